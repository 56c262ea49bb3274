"""Windows of a load: the only times in which it sends, so that loads can take turns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator


class FrozenModel(BaseModel):
    """A description: frozen, and a name that it does not know is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


MOST_WINDOWS = 100_000
BEGIN, COUNTED, END = range(3)


class Window(FrozenModel):
    """A time in which a load sends, in seconds from its planned start; its end is not of it."""

    start_s: float = Field(ge=0, le=86_400)
    end_s: float = Field(gt=0, le=86_400)


class Windows(FrozenModel):
    """When a load sends; outside nothing is planned, and users keep their connections.

    The first ``settle_ms`` of each window are sent and not counted (stage ``warmup``): in them
    queues fill, and caches that somebody else has used meanwhile. At the end of a window what is
    under way is let finish, and what was planned within it is sent, also by a client that is late.
    """

    spans: tuple[Window, ...] = Field(min_length=1, max_length=MOST_WINDOWS)
    settle_ms: float = Field(default=0.0, ge=0)

    @model_validator(mode="after")
    def _are_in_order(self) -> Self:
        for window in self.spans:
            if window.end_s - window.start_s <= self.settle_ms / 1e3:
                raise ValueError(
                    f"the window from {window.start_s:g} to {window.end_s:g} s is not longer than "
                    f"settle_ms={self.settle_ms:g}: nothing of it would count"
                )
        for before, after in pairwise(self.spans):
            if after.start_s < before.end_s:
                raise ValueError(
                    f"the window that begins at {after.start_s:g} s begins before the one before "
                    f"it ends, at {before.end_s:g} s: give windows in order, none within another"
                )
        return self

    def instants(self, start_ns: int = 0, warmup_s: float = 0.0) -> np.ndarray:
        """Return begin, begin of the counted part, and end of each window.

        Returns
        -------
        array of int64, shape (windows, 3)
            In ns, ``start_ns`` being the load's planned start. Where a window lies in the warm-up
            its counted part begins at its end: it has no length.
        """
        begin, end = np.array([(each.start_s, each.end_s) for each in self.spans]).T
        counted = np.where(end <= warmup_s, end, begin + self.settle_ms / 1e3)
        return np.rint(np.stack([begin, counted, end], axis=1) * 1e9).astype(np.int64) + start_ns


def check_windows(windows: Windows | None, warmup_s: float, length_s: float) -> None:
    """Raise ValueError where windows do not fit into a load of this length, in seconds."""
    if windows is None:
        return
    if windows.spans[-1].end_s > length_s + 1e-9:
        raise ValueError(
            f"the last window ends at {windows.spans[-1].end_s:g} s, the load at {length_s:g} s: "
            "make the load longer (duration_s and max_duration_s) or give fewer windows"
        )
    if windows.spans[-1].end_s <= warmup_s:
        raise ValueError("every window lies in warmup_s: nothing would count")
    for window in windows.spans:
        if window.start_s < warmup_s < window.end_s:
            raise ValueError(
                f"the warm-up ends within the window from {window.start_s:g} to {window.end_s:g} "
                "s: let it end between two windows"
            )


def window_of(instants_ns: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """Return the number of the window that each instant lies in; -1 where in none.

    Parameters
    ----------
    windows : array, shape (windows, 3)
        As of :meth:`Windows.instants`.
    """
    which = np.searchsorted(windows[:, BEGIN], instants_ns, side="right") - 1
    inside = (which >= 0) & (instants_ns < windows[which, END])
    numbers: np.ndarray = np.where(inside, which, -1)
    return numbers


def cut_at(windows: np.ndarray, end_ns: int) -> np.ndarray:
    """Return what of the windows had come when a load ended; the first stays, without a length."""
    come = windows[:, BEGIN] < end_ns
    come[0] = True
    kept: np.ndarray = np.minimum(windows[come], end_ns)
    return kept


def time_before(instants_ns: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """Return how much of some spans lies before each instant, in ns.

    Parameters
    ----------
    spans : array, shape (spans, 2)
        Begins and ends, in order, none within another.
    """
    # Seen from the first begin: as floats, instants since the machine's start are too coarse.
    origin = spans[0, 0]
    lengths = np.cumsum(spans[:, 1] - spans[:, 0])
    heights = np.stack([np.concatenate([[0], lengths[:-1]]), lengths], axis=1)
    before = np.interp(instants_ns - origin, (spans - origin).ravel(), heights.ravel())
    times_ns: np.ndarray = np.rint(before).astype(np.int64)
    return times_ns


def time_within(since_ns: np.ndarray, until_ns: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """Return how much of each time from one instant to another lies in some spans, in ns."""
    if not len(spans):
        return np.zeros(len(since_ns), dtype=np.int64)
    times_ns: np.ndarray = time_before(until_ns, spans) - time_before(since_ns, spans)
    return times_ns


def overlapping(since_ns: np.ndarray, until_ns: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """Return which of some times, both ends included, share an instant with one of the spans."""
    which = np.searchsorted(spans[:, 1], since_ns)
    known = which < len(spans)
    shares: np.ndarray = known & (spans[np.where(known, which, 0), 0] <= until_ns)
    return shares


@dataclass(frozen=True)
class Cycles:
    """What users of a closed loop are busy with in windows, and how many requests that comes to.

    They are free again ``think_ns`` after an answer, and plan ``pacing_ns`` apart.

    Counts of what was done in a window are wrong by the length of a request: users begin each
    window together, so that answers come in steps of a round, and a counted part of 40 ms holds
    seven rounds of 6 ms where 6.67 would be right. By Little's law (J. D. C. Little, Operations
    Research 9, 1961) the throughput of a closed loop is its users over the mean time from one plan
    of a user to the next, and that mean is known from the requests that were planned in the counted
    parts, whenever they ended: which these are does not depend on how long they take.
    """

    users: int
    think_ns: int = 0
    pacing_ns: int = 0

    def requests_in(self, span_ns: int, rows: Iterable[np.ndarray], pauses: np.ndarray) -> float:
        """Return how many requests all users make in a time, as long as those that they made.

        Parameters
        ----------
        rows : iterable of structured arrays
            With ``planned_ns`` and ``done_ns`` of the requests that were made, failures included.
        pauses : array of int64, shape (pauses, 2)
            When their service did not work, from a begin to an end in ns: no request goes on then.
        """
        made, length_ns = 0, 0
        for part in rows:
            planned_ns, done_ns = part["planned_ns"], part["done_ns"]
            awake_ns = done_ns - planned_ns - time_within(planned_ns, done_ns, pauses)
            made += len(part)
            length_ns += int(np.maximum(awake_ns + self.think_ns, self.pacing_ns).sum())
        return self.users * span_ns * made / length_ns if length_ns else 0.0
