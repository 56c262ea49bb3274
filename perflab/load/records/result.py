"""What one load left: every request on disk, and what the workers know of themselves.

Throughput, by the one definition of the whole lab: successes done in (begin, end], per second.

In the windows of a closed loop it is an estimate of that for the loop without windows, from how
long requests take (:class:`perflab.load.workload.windows.Cycles`).

A window includes its end and not its begin, so that of windows in a row none counts a success that
its neighbour counts.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from perflab.load.clients.outcome import MEASURE
from perflab.load.records.chunk_record import chunks
from perflab.load.records.columns import ROW, frame, rows
from perflab.load.records.looks import FailureStop, Looks
from perflab.load.records.message_record import messages
from perflab.load.records.progress import progress
from perflab.load.workload.windows import COUNTED, END, Cycles, window_of


def completed(done_ns: np.ndarray | pd.Series[int], begin_ns: int, end_ns: int) -> int:
    """Return how many of the instants lie in (begin, end]."""
    return int(((done_ns > begin_ns) & (done_ns <= end_ns)).sum())


def completed_in(done_ns: np.ndarray, spans: np.ndarray) -> int:
    """Return how many of the instants lie in one of some (begin, end], shape (spans, 2), in order.

    No two spans may overlap; one may begin where another ends.
    """
    which = np.searchsorted(spans[:, 0], done_ns, side="left") - 1
    return int(((which >= 0) & (done_ns <= spans[which, 1])).sum())


def per_second(count: float, begin_ns: int, end_ns: int) -> float:
    """Return a count as a rate over a window; NaN where that has no length."""
    return count / (end_ns - begin_ns) * 1e9 if end_ns > begin_ns else math.nan


ROWS_PER_CHUNK = 1 << 20


@dataclass(frozen=True)
class LoadResult:
    """What one load left: every request, and what the workers know of themselves.

    ``cpu_ns`` is the workers' CPU over the measure stage; ``looks`` how late the event loop of each
    worker was, and when; ``run_delay_share`` the part of the time they were ready but had no core;
    ``steal_share`` the part of their cores' time that other guests of the machine took; ``kernel``
    what the kernel counted of TCP (:mod:`perflab.load.checks.machine_counts`); ``unsent`` the
    planned requests that were never started; ``capped`` those that waited because of the cap on
    connections; ``clock_step_ms`` how far real time moved against monotonic time; ``real_time``
    whether the workers had real-time priority; ``stopped`` the reason why a rule or the user ended
    the load early; ``lasted_s`` the time from the common start until the first worker with users
    had nothing more to do; ``failure_stop`` the end by a number of failures, if it was that;
    ``first_errors`` the text of the first failure by error class and
    status; ``windows`` when it sent, if not always (ns, shape (windows, 3): begin, begin of what
    counts, end); ``cycles`` what its users are
    busy with in them, where it is a closed loop; ``pauses`` when its service
    was paused (ns, shape (pauses, 2)), for others to have their turn.
    """

    folder: Path
    workers: int
    cpu_ns: int
    looks: Sequence[Looks]
    run_delay_share: float
    unsent: int
    capped: int
    stopped: str
    clock_step_ms: float
    real_time: bool
    cores: int
    lasted_s: float
    first_errors: Mapping[tuple[str, int], str] = field(default_factory=dict)
    steal_share: float = 0.0
    kernel: Mapping[str, int] = field(default_factory=dict)
    failure_stop: FailureStop | None = None
    windows: np.ndarray | None = None
    cycles: Cycles | None = None
    pauses: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))

    @property
    def places(self) -> list[Path]:
        """Return each worker's folder."""
        return [self.folder / str(number) for number in range(self.workers)]

    @cached_property
    def rows(self) -> list[np.ndarray]:
        """Return each worker's rows, mapped from disk (see ``columns.ROW``)."""
        return [rows(place) for place in self.places]

    def chunks(self) -> Iterator[np.ndarray]:
        """Yield the rows of all stages in pieces, so that no load is too long for the memory."""
        for part in self.rows:
            for begin in range(0, len(part), ROWS_PER_CHUNK):
                yield part[begin : begin + ROWS_PER_CHUNK]

    def measured_by_worker(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the rows of the measure stage piece by piece, each with its worker's number."""
        for number, part in enumerate(self.rows):
            for begin in range(0, len(part), ROWS_PER_CHUNK):
                yield number, _of_measure(part[begin : begin + ROWS_PER_CHUNK])

    def measured(self, of: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return what ``of`` makes of the rows of the measure stage, piece by piece, joined."""
        found = [of(_of_measure(rows)) for rows in self.chunks()]
        return np.concatenate(found) if found else of(np.empty(0, dtype=ROW))

    @cached_property
    def at_once(self) -> bool:
        """Whether all measured requests were planned for one and the same instant."""
        planned = self.measured(lambda rows: rows["planned_ns"])
        return len(planned) > 0 and bool(planned.min() == planned.max())

    @cached_property
    def window(self) -> tuple[int, int]:
        """Return begin and end of the time for which throughput is taken.

        That is from the first planned instant of the measure stage (of the last worker to begin) to
        the last (of the first worker to end). Of requests planned for one instant it ends with
        their last end; of a load that failures ended, at the instant of the last of them.
        """
        if self.windows is not None:
            return int(self.counted[0, 0]), int(self.counted[-1, 1])
        begin_of: dict[int, int] = {}
        end_of: dict[int, int] = {}
        for worker, part in self.measured_by_worker():
            if len(part):
                first, last = int(part["planned_ns"].min()), int(part["planned_ns"].max())
                begin_of[worker] = min(first, begin_of.get(worker, first))
                end_of[worker] = max(last, end_of.get(worker, last))
        begins, ends = list(begin_of.values()), list(end_of.values())
        if self.at_once:
            ends = [int(self.measured(lambda rows: rows["done_ns"]).max())]
        if ends and len(self.messages):
            # Streams go on when the last request, often that which opened them, is long over.
            ends = [max(*ends, int(self.messages["at_ns"].iloc[-1]))]
        if ends and self.failure_stop is not None:
            # Users were at work until then, also those whose requests had not ended.
            ends = [self.failure_stop.at_ns]
        return max(begins, default=0), min(ends, default=0)

    @property
    def begin_ns(self) -> int:
        """Return the begin of the window of throughput."""
        return self.window[0]

    @property
    def end_ns(self) -> int:
        """Return the end of the window of throughput."""
        return self.window[1]

    @property
    def throughput_rps(self) -> float:
        """Return the successes per second that were done in (begin, end]; NaN without requests.

        The drain at the end is left out; successes of the warm-up that were done later count. Of
        requests planned for one instant the window lasts until their last end.
        """
        return self.rate(self.chunks())

    def rate(self, parts: Iterable[np.ndarray]) -> float:
        """Return the throughput of some of the rows, over the window of all (per second).

        With windows it is over the counted parts of them all, taken together; of a closed loop it
        is then estimated from how long requests take
        (:class:`perflab.load.workload.windows.Cycles`).
        """
        good = (rows[rows["error"] == 0] for rows in parts)
        begin_ns, end_ns = self.window
        if self.windows is None:
            count = sum(completed(rows["done_ns"], begin_ns, end_ns) for rows in good)
            return per_second(count, begin_ns, end_ns)
        if self.cycles is None:
            count = sum(completed_in(rows["done_ns"], self.counted) for rows in good)
            return per_second(count, 0, self.counted_ns)
        share = sum(len(_of_measure(rows)) for rows in good) / max(1, self._measured)
        return per_second(share * self.requests_counted, 0, self.counted_ns)

    @property
    def requests_counted(self) -> float:
        """Return for how many requests the measured time stands: all measured, or an estimate.

        It is estimated of a closed loop in windows.
        """
        if self.cycles is None:
            return float(self._measured)
        measured = (rows for _, rows in self.measured_by_worker())
        return self.cycles.requests_in(self.counted_ns, measured, self.pauses)

    @property
    def _measured(self) -> int:
        return sum(len(rows) for _, rows in self.measured_by_worker())

    @property
    def connections_opened(self) -> int:
        """Return the connections that measured requests opened."""
        return int(self.measured(lambda rows: rows["connect_ns"] > 0).sum())

    @property
    def successes_after(self) -> int:
        """Return the measured successes that were done after that window."""
        good = self.measured(lambda rows: rows["done_ns"][rows["error"] == 0])
        return int((good > self.window[1]).sum())

    @cached_property
    def counted(self) -> np.ndarray:
        """Return when it was measured: begins and ends in ns, shape (parts, 2), in order."""
        if self.windows is None:
            return np.array([self.window])
        parts = self.windows[self.windows[:, COUNTED] < self.windows[:, END], COUNTED:]
        # Ended before anything counted.
        return parts if len(parts) else np.zeros((1, 2), dtype=np.int64)

    @property
    def counted_ns(self) -> int:
        """Return for how long it was measured, in ns."""
        return int((self.counted[:, 1] - self.counted[:, 0]).sum())

    @cached_property
    def judged_looks(self) -> Sequence[Looks]:
        """Return the looks by which the client is judged: none of when it had nothing to do."""
        if self.windows is None:
            return self.looks
        return [looks.within(self.counted) for looks in self.looks]

    @cached_property
    def requests(self) -> pd.DataFrame:
        """Return every request of every worker, in the order of their planned instants.

        With windows, ``window`` is the number of the one that it was planned in.
        """
        frames = [frame(place, number) for number, place in enumerate(self.places)]
        whole = pd.concat(frames, ignore_index=True)
        if self.windows is not None:
            whole["window"] = window_of(whole["planned_ns"].to_numpy(), self.windows)
        return whole.sort_values("planned_ns", kind="stable", ignore_index=True)

    @cached_property
    def messages(self) -> pd.DataFrame:
        """Return the messages of all streams, in the order of their instants."""
        frames = [messages(place, number) for number, place in enumerate(self.places)]
        whole = pd.concat(frames, ignore_index=True)
        return whole.sort_values("at_ns", kind="stable", ignore_index=True)

    @cached_property
    def progress(self) -> pd.DataFrame:
        """Return the points at which bodies had come so far, by worker, request and instant."""
        return self._joined(progress)

    @cached_property
    def stream_chunks(self) -> pd.DataFrame:
        """Return the chunks of all streamed answers, by worker, request and number."""
        return self._joined(chunks)

    def _joined(self, of: Callable[[Path, int, np.ndarray], pd.DataFrame]) -> pd.DataFrame:
        pairs = zip(self.places, self.rows, strict=True)
        tables = [of(place, number, rows) for number, (place, rows) in enumerate(pairs)]
        return pd.concat(tables, ignore_index=True)

    @property
    def failures(self) -> list[str]:
        """Return the tracebacks of scripted users, one per kind of failure and worker."""
        places = [place / "failures.txt" for place in self.places]
        return [text for place in places if place.exists() and (text := place.read_text())]

    def discard(self) -> None:
        """Remove the raw rows; :attr:`requests` stays if it was read before."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _of_measure(rows: np.ndarray) -> np.ndarray:
    inside = rows["stage"] == MEASURE
    # Most pieces lie wholly inside: no copy of them.
    return rows if inside.all() else rows[inside]
