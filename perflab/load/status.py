"""How ``perflab load`` ends: one exit status for each cause, so that scripts can tell them apart.

A missed objective has the status that k6 gives to a missed threshold, and so has a load that a
number of failures ended. Of several causes the first
in the order below is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

INTERRUPTION = "interrupted"


class Status(IntEnum):
    """The exit statuses; 2 is the command line's own, for words that it cannot read."""

    GOOD = 0
    ERROR = 1
    INVALID = 3
    ALL_FAILED = 4
    MISSED = 99
    INTERRUPTED = 130


def status_of(shown: Mapping[str, Any]) -> Status:
    """Return the exit status for a summary (see ``report.summary``)."""
    held = [each["held"] for each in shown["objectives"]]
    if shown["stopped"] == INTERRUPTION:
        return Status.INTERRUPTED
    if shown["requests"] and shown["errors"] == shown["requests"]:
        return Status.ALL_FAILED
    # What cannot be judged has not been shown to hold.
    if not shown["valid"] or (None in held and False not in held):
        return Status.INVALID
    return Status.MISSED if False in held or "stop" in shown else Status.GOOD
