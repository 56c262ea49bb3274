"""The exit statuses of ``perflab load``."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perflab.load.summary import LoadSummary


class Status(IntEnum):
    """The exit statuses; 99 is that of k6 for a missed threshold, and typer uses 2."""

    GOOD = 0
    ERROR = 1
    INVALID = 3
    ALL_FAILED = 4
    MISSED = 99
    INTERRUPTED = 130


def status_of(summary: LoadSummary) -> Status:
    """Return the exit status for a summary."""
    from perflab.load.once import INTERRUPTION

    held = [objective.held for objective in summary.objectives]
    if summary.stopped == INTERRUPTION:
        return Status.INTERRUPTED
    if summary.requests and summary.errors == summary.requests:
        return Status.ALL_FAILED
    # An objective that cannot be judged is not shown to hold.
    if not summary.valid or (None in held and False not in held):
        return Status.INVALID
    return Status.MISSED if False in held or summary.stop else Status.GOOD
