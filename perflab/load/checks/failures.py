"""Which requests of a load failed or never ended, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from perflab.load.clients.outcome import CODES, CUT_OFF, ERRORS
from perflab.load.records.failure_stop import FailureStop
from perflab.load.records.result import LoadResult

# Texts for error classes whose failures have no message of their own.
WORDS = {
    "timeout": "no whole answer within the time-out (--timeout)",
    "silent": "a WebSocket got nothing, not even an answer to a ping",
    "closed": "the server closed the connection before it answered",
    "truncated": "the server closed the connection in the middle of its answer",
    "no_close_notify": "the connection ended without TLS's close_notify, and the answer has no "
    "length: nothing says that it is whole",
    "aborted": "still under way when the load was ended",
    "unsent": "no connection became free before the load ended",
}
MOST_STATUSES = 1_000
STATUS = CODES["status"]
CLOSINGS = (CODES["closed"], CODES["reset"])
LEAST_IDLE_NS = 0.1e9
UNSENT = CODES["unsent"]


@dataclass(frozen=True)
class Cause:
    """``count`` requests failed alike; ``status`` is not 0 only for unexpected statuses."""

    error: str
    status: int
    count: int
    first: str

    @property
    def text(self) -> str:
        """Return it in words: ``100 x status 404 (first: HTTP/1.1 404 Not Found, 9 bytes)``."""
        label = f"{self.error} {self.status}" if self.status else self.error
        return f"{self.count} x {label}" + (f" (first: {self.first})" if self.first else "")


def causes(result: LoadResult) -> list[Cause]:
    """Return the causes of failure in the measure stage, the most frequent first."""
    return _counted(result, [_keys(rows) for _, rows in result.measured_by_worker()])


def _counted(result: LoadResult, pieces: Sequence[np.ndarray]) -> list[Cause]:
    all_keys = np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int32)
    keys, counts = np.unique(all_keys, return_counts=True)
    causes = []
    for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
        code, status = divmod(key, MOST_STATUSES)
        if code:
            kind = ERRORS[code]
            causes.append(Cause(kind, status, count, _first(result, kind, status)))
    return sorted(causes, key=lambda cause: -cause.count)


def in_words(causes: Sequence[Cause], most: int = 3) -> str:
    """Return the most frequent causes as one line."""
    shown = ", ".join(cause.text for cause in causes[:most])
    return shown + (f", and {len(causes) - most} more causes" if len(causes) > most else "")


def _keys(rows: np.ndarray) -> np.ndarray:
    codes = rows["error"].astype(np.int32)
    return codes * MOST_STATUSES + np.where(codes == STATUS, rows["status"], 0)


def _first(result: LoadResult, kind: str, status: int) -> str:
    texts = result.first_errors
    of_kind = (text for (text_kind, _), text in texts.items() if text_kind == kind)
    return texts.get((kind, status)) or next(of_kind, "") or WORDS.get(kind, "")


@dataclass(frozen=True)
class Part:
    """Requests on one side of the stop; the load's own end cut ``given_up`` of them off."""

    requests: int
    successes: int
    failures: int
    given_up: int
    causes: tuple[Cause, ...]


@dataclass(frozen=True, kw_only=True)
class AroundStop(FailureStop):
    """A stop with the requests that ended until it (warm-up included), after it, or neither.

    ``until.failures`` is the number that ended the load; it is larger only if several failures
    ended at the same instant. ``under_way`` requests were started and had not ended.
    """

    until: Part
    after: Part
    under_way: int


def around_stop(result: LoadResult) -> AroundStop | None:
    """Return the requests on both sides of the stop; None where failures did not end the load."""
    stop = result.failure_stop
    if stop is None:
        return None
    under_way = result.count(
        lambda rows: (rows["started_ns"] <= stop.at_ns) & (rows["done_ns"] > stop.at_ns)
        & (rows["error"] != UNSENT)
    )  # fmt: skip
    until, after = (_part(result, stop, late=late) for late in (False, True))
    return AroundStop(**asdict(stop), until=until, after=after, under_way=under_way)


def _part(result: LoadResult, stop: FailureStop, *, late: bool) -> Part:
    requests, pieces = 0, []
    for rows in result.chunks():
        of_part = rows[(rows["done_ns"] > stop.at_ns) == late]
        requests += len(of_part)
        pieces.append(_keys(of_part))
    causes = _counted(result, pieces)
    given_up = sum(cause.count for cause in causes if cause.error in CUT_OFF)
    failures = sum(cause.count for cause in causes) - given_up
    return Part(requests, requests - failures - given_up, failures, given_up, tuple(causes))
