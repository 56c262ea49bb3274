"""The exit statuses of ``perflab load``."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    pass


class Status(IntEnum):
    """The exit statuses; 99 is that of k6 for a missed threshold, and typer uses 2."""

    GOOD = 0
    ERROR = 1
    INVALID = 3
    ALL_FAILED = 4
    MISSED = 99
    INTERRUPTED = 130


def status_of(shown: Mapping[str, Any]) -> Status:
    """Return the exit status for a summary (see ``report.summary``)."""
    from perflab.load.once import INTERRUPTION

    held = [objective["held"] for objective in shown["objectives"]]
    if shown["stopped"] == INTERRUPTION:
        return Status.INTERRUPTED
    if shown["requests"] and shown["errors"] == shown["requests"]:
        return Status.ALL_FAILED
    # An objective that cannot be judged is not shown to hold.
    if not shown["valid"] or (None in held and False not in held):
        return Status.INVALID
    return Status.MISSED if False in held or "stop" in shown else Status.GOOD
