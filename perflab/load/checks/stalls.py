"""Whether a client that stood still, or was late on the whole, could have moved a printed number.

The event loop is judged by its delays while the load was busy: those of an idle loop say nothing.
The rule for stalls: had the client never stood still, could the throughput, the mean or a
percentile that trials are compared by be lower (the throughput higher) by more than a tenth? Every
stall counts against every request that was under way in it. So the rule works for closed loops too:
their users wait with the client, no request is sent late, and the record fulfils Little's law. A
stall that meets a few requests of many moves none of these numbers, and refuses nothing; the
maximum and p99.9 are marked instead (:mod:`perflab.load.checks.times`).

Times of messages begin at the planned instant of their sending, like those of requests. They hold
two delays of the client: the sender began late, and the listener's worker stood still while the
message was under way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perflab.load.checks.times import Times, short_delays_ms
from perflab.load.records.looks import Looks
from perflab.load.records.result import LoadResult
from perflab.load.workload.arrivals import Scripted
from perflab.load.workload.workload import Workload
from perflab.recordings.responses import MAX_CLIENT_SHARE
from perflab.recordings.schema import Reason
from perflab.statistics.in_words import counted
from perflab.statistics.quantiles import OF_TRIALS

# Below it, lateness on the whole is a warning and refuses nothing.
LEAST_MEAN_LATE_MS = 0.2
STALLS, STALLED_TIME, MEAN_DELAY = (
    "generator.stalls", "generator.stalled_time", "generator.mean_delay",
)  # fmt: skip
WINDOWS = 20
BUSY_SHARE = 0.5


@dataclass(frozen=True)
class Delays:
    """How late the event loop was while the load was busy, in ms; a single 0 without any look.

    ``looks`` has one delay per wake-up: these can be counted as independent. ``ticks`` has the
    delay of every tick, missed ones included: how late the loop was over the time.
    """

    looks: np.ndarray
    ticks: np.ndarray


def delays(result: LoadResult, workload: Workload) -> Delays:
    """Return the event loop's delays by which a load is judged.

    Of closed and open loops all delays count, or those in the counted parts of their windows. With
    scripted users only those of the busy part count: a crowd that joins for a minute and acts for
    half of one would hide a late loop behind the quiet time before it.
    """
    woken = [(looks.woken_ns, looks.late_ms) for looks in result.judged_looks]
    ticks = [looks.ticks for looks in result.judged_looks]
    return Delays(_judged(woken, result, workload), _judged(ticks, result, workload))


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
        at_ns: np.ndarray = result.messages["at_ns"].to_numpy()
        return at_ns
    return np.concatenate([rows["done_ns"] for rows in result.rows])


def stalled_share(result: LoadResult) -> float:
    """Return the share of the measured time in which the workers' event loops stood still."""
    begin_ns, end_ns = result.counted.T
    length_ns = result.counted_ns * max(1, len(result.looks))
    still_ns = sum(int(looks.stood_still_ns(begin_ns, end_ns).sum()) for looks in result.looks)
    return still_ns / length_ns if length_ns > 0 else 0.0


def reasons(result: LoadResult, times: Times) -> list[Reason]:
    """Return the reasons against a load from the client's stalls and its mean lateness."""
    texts = {}
    lengths_ns = [np.diff(looks.stalls).ravel() for looks in result.judged_looks]
    lengths_ms = np.concatenate(lengths_ns) / 1e6
    stalls_text = f"the client stood still {counted(len(lengths_ms), 'time')}"
    stalls_text += f", up to {lengths_ms.max(initial=0):.0f} ms"
    moved_numbers = [
        f"{name} from {lower:.2f} to {usual:.2f} ms"
        for name, (usual, lower) in times.without_stalls(OF_TRIALS).items()
        if usual - lower > MAX_CLIENT_SHARE * usual
    ]
    if moved_numbers:
        texts[STALLS] = f"{stalls_text}: that may have raised {moved_numbers[-1]}"
    share = stalled_share(result)
    if share > MAX_CLIENT_SHARE:
        texts[STALLED_TIME] = (
            f"{stalls_text}, {share:.0%} of the time: the numbers contain its own pauses"
        )
    late_ms = times.mean_late_ms()
    mean_ms = float(times.known.mean()) / 1e6 if len(times.known) else np.inf
    if late_ms > max(LEAST_MEAN_LATE_MS, MAX_CLIENT_SHARE * mean_ms):
        text = f"the client was late by {late_ms:.2f} ms on average"
        texts[MEAN_DELAY] = f"{text}, and the mean response time is {mean_ms:.2f} ms"
    return [Reason(code=code, side="client", text=text) for code, text in texts.items()]


NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Sending:
    """When the sending of each message began (ns), by its planned instant.

    ``looks`` are those of each worker; without any, no stall is known.
    """

    at_ns: pd.Series[int]
    looks: Sequence[Looks] = ()

    @classmethod
    def of(cls, messages: pd.DataFrame, looks: Sequence[Looks] = ()) -> Sending:
        """Read it from a recording; of messages planned for one instant the last counts."""
        sent = messages[(messages["direction"] == "sent") & (messages["planned_ns"] > 0)]
        return cls(sent.groupby("planned_ns")["at_ns"].max(), looks)

    def times(self, received: pd.DataFrame) -> Times:
        """Return the times of messages that listeners received (rows of a recording)."""
        parts = [self._of_worker(int(str(name)), rows) for name, rows in received.groupby("worker")]
        known, late, stalled = (
            np.concatenate(pieces) if parts else NONE
            for pieces in (zip(*parts, strict=True) if parts else (NONE,) * 3)
        )
        return Times(known, NONE, late, stalled, short_delays_ms(self.looks))

    def _of_worker(self, worker: int, received: pd.DataFrame) -> tuple[np.ndarray, ...]:
        planned_ns, received_ns = received["planned_ns"].to_numpy(), received["at_ns"].to_numpy()
        # A message that no script noted as sent was not late.
        sent_ns = (
            received["planned_ns"].map(self.at_ns).fillna(received["planned_ns"]).to_numpy(np.int64)
        )
        sent_ns = np.clip(sent_ns, planned_ns, received_ns)
        looks = self.looks[worker] if worker < len(self.looks) else Looks()
        late = sent_ns - planned_ns + looks.stood_still_ns(sent_ns, received_ns)
        return received_ns - planned_ns, late, looks.stood_still_ns(planned_ns, received_ns)


def received(result: LoadResult) -> Times:
    """Return the times of all messages of a load that have a kind and a planned instant."""
    messages = result.messages.rename(columns={"key": "planned_ns"})
    named = messages[(messages["planned_ns"] > 0) & (messages["kind"] != "")]
    return Sending.of(named, result.looks).times(named[named["direction"] == "received"])
