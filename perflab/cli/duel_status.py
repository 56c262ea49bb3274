"""The exit statuses of ``perflab duel``; its help and docs/how-to/duel.md say what each means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from perflab.errors import ImageError, RunInterrupted, ServiceFailed, WrongAnswer

if TYPE_CHECKING:
    from perflab.reports.duel_pairs import Pair

GOOD, WORSE, NOT_JUDGED, UNDECIDED = 0, 3, 4, 5
# What `git bisect run` understands: any other status below 126 is a bad commit, one above ends it.
NOT_SLOWER, SLOWER, SKIPPED, LAB_FAILED, INTERRUPTED = 0, 1, 125, 128, 130


def status_of(pairs: Sequence[Pair], strict: bool) -> int:
    """Return the status of a duel that was measured: the first that applies of 3, 4 and 5."""
    from perflab.analysis.gates.not_compared import is_compared
    from perflab.analysis.results import Gate

    results = {result for pair in pairs for result in pair.gate.values()}
    if Gate.FAILED in results:
        return WORSE
    if Gate.NOT_JUDGED in results or not all(is_compared(pair.findings) for pair in pairs):
        return NOT_JUDGED
    return UNDECIDED if strict and Gate.NOT_DECIDED in results else GOOD


def bisected(pairs: Sequence[Pair]) -> int:
    """Return the status for `git bisect run`: of thresholds if there are any, else of the mean."""
    from perflab.analysis.results import OPEN, Compared, Gate

    results = {result for pair in pairs for result in pair.gate.values()}
    if results:
        held = NOT_SLOWER if results == {Gate.PASSED} else SKIPPED
        return SLOWER if Gate.FAILED in results else held
    result = next(pair.findings["mean_ms"].verdict.result for pair in pairs)
    if result in OPEN:
        return SKIPPED
    return SLOWER if result is Compared.WORSE else NOT_SLOWER


def status_of_error(error: Exception) -> int:
    """Return the status for `git bisect run` where no duel was measured."""
    if isinstance(error, RunInterrupted):
        return INTERRUPTED
    # The commit cannot be built or started, or answers otherwise.
    is_of_commit = isinstance(error, ServiceFailed | ImageError | WrongAnswer)
    return SKIPPED if is_of_commit else LAB_FAILED
