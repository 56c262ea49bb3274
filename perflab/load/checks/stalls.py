"""Whether a client that stood still, or was late on the whole, could have moved a printed number.

Its event loop is judged by its delays while the load was busy: those of an idle loop say nothing.
The rule for stalls: had the client never stood still, could the throughput, the mean or a
percentile that trials are compared by be lower (the throughput higher) by more than a tenth? Every
stall is held against every request that was under way in it, so it holds for closed loops too:
their users wait with the client, nothing is sent late, and Little's law is fulfilled by what was
measured. A stall that meets a few requests of many moves none of these numbers, and refuses
nothing; what it does to the maximum and to p99.9 is said beside them
(:mod:`perflab.load.checks.times`).

Times of messages that listeners were given, each with what of it may be the client's own.

They begin at the instant for which the sending was planned, as those of requests do, and hold two
delays of the client's own: the sender took the message up late, and the listener's worker stood
still while it was under way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perflab.load.checks.times import MAX_CLIENT_SHARE, Times, short_delays_ms
from perflab.load.records.looks import TICK_MS, Looks
from perflab.load.records.result import LoadResult
from perflab.load.workload.arrivals import Scripted
from perflab.load.workload.workload import Workload
from perflab.recordings.schema import Reason
from perflab.statistics.percentiles import OF_TRIALS

# Below it a client that is late on the whole is told beside the numbers, and not refused.
LEAST_MEAN_LATE_MS = 0.2
STALLS, STALLED_TIME, MEAN_DELAY = (
    "generator.stalls", "generator.stalled_time", "generator.mean_delay",
)  # fmt: skip
WINDOWS = 20
BUSY_SHARE = 0.5


@dataclass(frozen=True)
class Delays:
    """How late the event loop was while the load was busy, in ms; one 0 where nobody looked.

    ``looks`` are its wake-ups, one for each: they can be counted as independent. ``ticks`` are all
    ticks, those that a stall swallowed with their own lateness: how late it was over the time.
    """

    looks: np.ndarray
    ticks: np.ndarray

    @property
    def short(self) -> np.ndarray:
        """Return the looks that are no stalls."""
        return self.looks[self.looks < TICK_MS]


def delays(result: LoadResult, workload: Workload) -> Delays:
    """Return the event loop's delays by which a load is judged.

    Closed and open loops are busy from the first request to the last, or in the counted parts of
    their windows: all delays of that time count. Of
    scripted users, only those of the busy part do: a crowd that joins for a minute and acts for
    half of one would hide a plateau with a late loop behind the quiet time before it.
    """
    looks = [(each.woken_ns, each.late_ms) for each in result.judged_looks]
    ticks = [each.ticks for each in result.judged_looks]
    return Delays(_judged(looks, result, workload), _judged(ticks, result, workload))


def _judged(
    parts: Sequence[tuple[np.ndarray, np.ndarray]], result: LoadResult, workload: Workload
) -> np.ndarray:
    at_ns, late_ms = (np.concatenate(each) for each in zip(*parts, strict=True))
    if isinstance(workload.arrivals, Scripted):
        late_ms = late_ms[is_busy(at_ns, _recorded_at_ns(result))]
    return late_ms if len(late_ms) else np.zeros(1)


def is_busy(at_ns: np.ndarray, recorded_at_ns: np.ndarray) -> np.ndarray:
    """Return which instants lie in the busy part of a load, by the records made in it.

    From first to last record the load is cut into 20 equal windows. A window is busy where it
    holds at least half as many records as the fullest one. All busy windows are judged as one
    sample. The worst of them alone would be the largest of several noisy percentiles and refuse
    healthy clients more often than one percentile does; from first to last message would still
    take in the slow growth of a crowd that acts while it joins. A steady load is busy throughout,
    so that it is judged as any other.
    """
    if not len(recorded_at_ns):
        return np.ones(len(at_ns), dtype=bool)
    first, last = int(recorded_at_ns.min()), int(recorded_at_ns.max())
    width_ns = max(1, -(-(last + 1 - first) // WINDOWS))
    counts = np.bincount((recorded_at_ns - first) // width_ns, minlength=WINDOWS)
    full = counts >= BUSY_SHARE * counts.max()
    inside = (at_ns >= first) & (at_ns <= last)
    chosen: np.ndarray = np.zeros(len(at_ns), dtype=bool)
    chosen[inside] = full[(at_ns[inside] - first) // width_ns]
    return chosen


def _recorded_at_ns(result: LoadResult) -> np.ndarray:
    """Return when messages were sent or read; the ends of requests where there were none."""
    if len(result.messages):
        at_ns: np.ndarray = result.messages["at_ns"].to_numpy()
        return at_ns
    return np.concatenate([rows["done_ns"] for rows in result.rows])


def stalled_share(result: LoadResult) -> float:
    """Return for which share of the measured time the event loops stood still, over all workers."""
    begin_ns, end_ns = result.counted.T
    length_ns = result.counted_ns * max(1, len(result.looks))
    still_ns = sum(int(looks.stood_still_ns(begin_ns, end_ns).sum()) for looks in result.looks)
    return still_ns / length_ns if length_ns > 0 else 0.0


def reasons(result: LoadResult, times: Times) -> list[Reason]:
    """Return what the client's stalls and its lateness on the whole say against a load."""
    texts = {}
    lengths_ns = [np.diff(looks.stalls).ravel() for looks in result.judged_looks]
    lengths_ms = np.concatenate(lengths_ns) / 1e6
    still = f"the client stood still {len(lengths_ms)} times"
    still += f", up to {lengths_ms.max(initial=0):.0f} ms"
    moved = [
        f"{name} of {usual:.2f} ms could be {lower:.2f} ms"
        for name, (usual, lower) in times.without_stalls(OF_TRIALS).items()
        if usual - lower > MAX_CLIENT_SHARE * usual
    ]
    if moved:
        texts[STALLS] = f"{still}: without that, {moved[-1]}"
    share = stalled_share(result)
    if share > MAX_CLIENT_SHARE:
        texts[STALLED_TIME] = f"{still}, {share:.0%} of the time: it measured its own pauses"
    late_ms, mean_ms = times.mean_late_ms(), _mean_ms(times)
    if late_ms > max(LEAST_MEAN_LATE_MS, MAX_CLIENT_SHARE * mean_ms):
        text = f"the client was late by {late_ms:.2f} ms on the mean"
        texts[MEAN_DELAY] = f"{text}, of a mean response time of {mean_ms:.2f} ms"
    return [Reason(code=code, side="client", text=text) for code, text in texts.items()]


def _mean_ms(times: Times) -> float:
    return float(times.known.mean()) / 1e6 if len(times.known) else np.inf


NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Sending:
    """When messages were taken up (ns), by the instant they were planned for, and who looked on.

    ``looks`` are those of each worker; without any, nobody knows of a stall.
    """

    at_ns: pd.Series[int]
    looks: Sequence[Looks] = ()

    @classmethod
    def of(cls, messages: pd.DataFrame, looks: Sequence[Looks] = ()) -> Sending:
        """Take it from messages as a recording has them.

        Of several that were planned for one instant the last counts.
        """
        sent = messages[(messages["direction"] == "sent") & (messages["planned_ns"] > 0)]
        return cls(sent.groupby("planned_ns")["at_ns"].max(), looks)

    def times(self, given: pd.DataFrame) -> Times:
        """Return the times of messages that were given to listeners (rows of a recording)."""
        parts = [self._of_worker(int(str(name)), own) for name, own in given.groupby("worker")]
        known, late, stalled = (
            np.concatenate(each) if parts else NONE
            for each in (zip(*parts, strict=True) if parts else (NONE,) * 3)
        )
        return Times(known, NONE, late, stalled, short_delays_ms(self.looks))

    def _of_worker(self, worker: int, given: pd.DataFrame) -> tuple[np.ndarray, ...]:
        planned, came = given["planned_ns"].to_numpy(), given["at_ns"].to_numpy()
        # What no script says it sent was not late.
        sent = given["planned_ns"].map(self.at_ns).fillna(given["planned_ns"]).to_numpy(np.int64)
        sent = np.clip(sent, planned, came)
        looks = self.looks[worker] if worker < len(self.looks) else Looks()
        late = sent - planned + looks.stood_still_ns(sent, came)
        return came - planned, late, looks.stood_still_ns(planned, came)


def received(result: LoadResult) -> Times:
    """Return the times of all messages of a load that have a kind and a planned instant."""
    messages = result.messages.rename(columns={"key": "planned_ns"})
    named = messages[(messages["planned_ns"] > 0) & (messages["kind"] != "")]
    return Sending.of(named, result.looks).times(named[named["direction"] == "received"])
