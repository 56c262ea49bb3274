"""When the client's event loop stood still or was late, and what messages hold of that.

The event loop is judged by its delays while the load was busy: those of an idle loop say nothing.
Every stall counts against every request and message that was under way in it.

Times of messages begin at the planned instant of their sending, like those of requests. They hold
two delays of the client: the sender began late, and the listener's worker stood still while the
message was under way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perflab.load.records.result import LoadResult
from perflab.load.records.times import Times, short_delays_ms
from perflab.load.records.wakeups import Wakeups
from perflab.load.workload.arrivals import Scripted
from perflab.load.workload.workload import Workload

WINDOWS = 20
BUSY_SHARE = 0.5
NONE = np.zeros(0, dtype=np.int64)


def delays(result: LoadResult, workload: Workload) -> tuple[np.ndarray, np.ndarray]:
    """Return the event loop's delays by which a load is judged, in ms: of wakeups, and of ticks.

    There is one delay per wake-up: these can be counted as independent. Every tick has one,
    missed ones included: how late the loop was over the time. A single 0 stands for no wake-up.

    Of closed and open loops all delays count, or those in the counted parts of their windows. With
    scripted users only those of the busy part count: a crowd that joins for a minute and acts for
    half of one would hide a late loop behind the quiet time before it.
    """
    woken = [(wakeups.woken_ns, wakeups.late_ms) for wakeups in result.judged_wakeups]
    ticks = [wakeups.ticks for wakeups in result.judged_wakeups]
    return _judged(woken, result, workload), _judged(ticks, result, workload)


def _judged(
    parts: Sequence[tuple[np.ndarray, np.ndarray]], result: LoadResult, workload: Workload
) -> np.ndarray:
    at_ns, late_ms = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
    if isinstance(workload.arrivals, Scripted):
        late_ms = late_ms[is_busy(at_ns, _recorded_at_ns(result))]
    return late_ms if len(late_ms) else np.zeros(1)


def is_busy(at_ns: np.ndarray, recorded_at_ns: np.ndarray) -> np.ndarray:
    """Return which instants lie in the busy part of a load, given the instants of its records.

    From first to last record the load is cut into 20 equal windows. A window is busy where it
    holds at least half as many records as the fullest one. All busy windows are judged as one
    sample: the worst of them alone would refuse healthy clients too often.
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
        return result.messages["at_ns"].to_numpy()
    return np.concatenate([rows["done_ns"] for rows in result.rows])


@dataclass(frozen=True)
class Sending:
    """When the sending of each message began (ns), by its planned instant.

    ``wakeups`` are those of each worker; without any, no stall is known.
    """

    at_ns: pd.Series[int]
    wakeups: Sequence[Wakeups] = ()

    @classmethod
    def of(cls, messages: pd.DataFrame, wakeups: Sequence[Wakeups] = ()) -> Sending:
        """Read it from a recording; of messages planned for one instant the last counts."""
        sent = messages[(messages["direction"] == "sent") & (messages["planned_ns"] > 0)]
        return cls(sent.groupby("planned_ns")["at_ns"].max(), wakeups)

    def times(self, received: pd.DataFrame) -> Times:
        """Return the times of messages that listeners received (rows of a recording)."""
        parts = [self._of_worker(int(str(name)), rows) for name, rows in received.groupby("worker")]
        known, late = map(np.concatenate, zip((NONE, NONE), *parts, strict=True))
        return Times(known, NONE, late, short_delays_ms(self.wakeups))

    def _of_worker(self, worker: int, received: pd.DataFrame) -> tuple[np.ndarray, ...]:
        planned_ns, received_ns = received["planned_ns"].to_numpy(), received["at_ns"].to_numpy()
        # A message that no script noted as sent was not late.
        sent_ns = (
            received["planned_ns"].map(self.at_ns).fillna(received["planned_ns"]).to_numpy(np.int64)
        )
        sent_ns = np.clip(sent_ns, planned_ns, received_ns)
        wakeups = self.wakeups[worker] if worker < len(self.wakeups) else Wakeups()
        late = sent_ns - planned_ns + wakeups.stood_still_ns(sent_ns, received_ns)
        return received_ns - planned_ns, late


def received(result: LoadResult) -> Times:
    """Return the times of a load's messages that have a kind and were planned after the warm-up."""
    messages = result.messages.rename(columns={"key": "planned_ns"})
    named = messages[(messages["planned_ns"] > 0) & (messages["kind"] != "")]
    chosen = (named["direction"] == "received") & (named["planned_ns"] >= result.begin_ns)
    return Sending.of(named, result.wakeups).times(named[chosen])
