"""The result of one load: every request on disk, and the reports of the workers.

The lab has one definition of throughput: successes done in (begin, end], per second. A window
includes its end and not its begin, so that adjoining windows count no success twice. In the windows
of a closed loop, throughput is estimated for the loop without windows, from how long requests take
(:class:`perflab.load.workload.windows.Cycles`).
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from perflab.credentials import masked
from perflab.load.clients.outcome import CODES, MEASURE, WARMUP
from perflab.load.records.arrival_points import progress
from perflab.load.records.chunk_rows import chunks
from perflab.load.records.columns import ROW, frame, rows
from perflab.load.records.failure_stop import FailureStop
from perflab.load.records.message_record import messages
from perflab.load.records.names import TEMPLATE_NAMES, names_in
from perflab.load.records.times import OF_ROWS, Times, of_rows, short_delays_ms
from perflab.load.records.wakeups import Wakeups
from perflab.load.workload.windows import COUNTED, END, Cycles, window_of

ROWS_PER_CHUNK = 1 << 20
NO_TEMPLATE = -1


def completed(done_ns: np.ndarray, spans: np.ndarray) -> int:
    """Return how many of the instants lie in one of the spans (begin, end].

    ``spans`` has shape (spans, 2), sorted. No two may overlap; one may begin where another ends.
    """
    span = np.searchsorted(spans[:, 0], done_ns, side="left") - 1
    return int(((span >= 0) & (done_ns <= spans[span, 1])).sum())


def per_second(count: float, length_ns: int) -> float:
    """Return a count as a rate; NaN for a time without length."""
    return count / length_ns * 1e9 if length_ns > 0 else math.nan


@dataclass(frozen=True)
class LoadResult:
    """The result of one load: every request, and the reports of the workers.

    ``wakeups`` and ``cpu_ns`` (over the measure stage) are of the workers. ``run_delay_share`` and
    ``steal_share`` are shares of the time in which they had no core, and which other guests of the
    machine took from their cores; ``clock_step_ms`` is how far real time moved against monotonic
    time. ``unsent`` requests were never started, ``capped`` ones waited for the cap on connections,
    ``resent`` ones were sent again because the server had not begun them. ``users_lost`` scripted
    users did not get beyond their ``on_start``.
    ``stopped`` says why the load was ended early; ``lasted_s`` is the time until the first worker
    with users had nothing more to do. ``measured_from_ns`` is the planned end of the warm-up of
    scripted users, and ``lasts_until_ns`` the planned end of users by time (0: of other loads).
    ``windows`` are begin, begin of the counted part and end of each window, ``pauses`` begin and
    end of those of the service, both int64 arrays in ns.
    """

    folder: Path
    workers: int
    cpu_ns: int
    wakeups: Sequence[Wakeups]
    run_delay_share: float
    unsent: int
    capped: int
    stopped: str
    clock_step_ms: float
    real_time: bool
    cores: int
    lasted_s: float
    first_errors: Mapping[tuple[str, int], str] = field(default_factory=dict)
    resent: int = 0
    users_lost: int = 0
    measured_from_ns: int = 0
    lasts_until_ns: int = 0
    steal_share: float = 0.0
    kernel: Mapping[str, int] = field(default_factory=dict)
    failure_stop: FailureStop | None = None
    windows: np.ndarray | None = None
    cycles: Cycles | None = None
    pauses: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    timeout_s: float = math.inf

    @property
    def places(self) -> list[Path]:
        """Return each worker's folder."""
        return [self.folder / str(number) for number in range(self.workers)]

    @cached_property
    def rows(self) -> list[np.ndarray]:
        """Return each worker's rows, mapped from disk (see ``columns.ROW``)."""
        return [rows(place) for place in self.places]

    def chunks(self) -> Iterator[np.ndarray]:
        """Yield the rows of all stages in pieces, so that any load fits into memory."""
        for part in self.rows:
            for begin in range(0, len(part), ROWS_PER_CHUNK):
                yield part[begin : begin + ROWS_PER_CHUNK]

    def count(self, of: Callable[[np.ndarray], np.ndarray]) -> int:
        """Return for how many rows of all stages ``of`` is true, piece by piece."""
        return sum(int(np.count_nonzero(of(rows))) for rows in self.chunks())

    def measured_by_worker(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the rows of the measure stage piece by piece, each with its worker's number."""
        for number, part in enumerate(self.rows):
            for begin in range(0, len(part), ROWS_PER_CHUNK):
                yield number, _of_measure(part[begin : begin + ROWS_PER_CHUNK])

    def measured(self, of: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return the joined results of ``of`` for each piece of the measure stage's rows."""
        pieces = [of(_of_measure(rows)) for rows in self.chunks()]
        return np.concatenate(pieces) if pieces else of(np.empty(0, dtype=ROW))

    @cached_property
    def at_once(self) -> bool:
        """Whether all measured requests were planned for the same instant."""
        planned = self.measured(lambda rows: rows["planned_ns"])
        return len(planned) > 0 and bool(planned.min() == planned.max())

    @cached_property
    def window(self) -> tuple[int, int]:
        """Return begin and end of the window of throughput.

        It begins with the first planned instant of the measure stage (of the last worker to begin)
        and ends with the last (of the first worker to end). For requests planned for one instant it
        ends with their last end; for a load that failures ended, with the last of these. Where
        requests of users timed out, it ends as planned.
        """
        if self.windows is not None:
            return int(self.counted[0, 0]), int(self.counted[-1, 1])
        planned = [part["planned_ns"][part["stage"] == MEASURE] for part in self.rows]
        begins, ends = ([int(of(one)) for one in planned if len(one)] for of in (np.min, np.max))
        if self._only_listen():
            last_ns = self.measured(lambda rows: rows["done_ns"]).max(initial=0)
            begins, ends = [self.measured_from_ns], [int(last_ns)]
        if self.at_once:
            ends = [int(self.measured(lambda rows: rows["done_ns"]).max())]
        if ends and len(self.messages):
            # Streams go on after the last request, which often only opened them.
            ends = [max(*ends, int(self.messages["at_ns"].iloc[-1]))]
        if ends and self.lasts_until_ns and self._has_timed_out():
            # Who waited in vain planned nothing more, and was at work until the planned end.
            ends = [max(*ends, self.lasts_until_ns)]
        if ends and self.failure_stop is not None:
            # All users were at work until then, even if their requests had not ended.
            ends = [self.failure_stop.at_ns]
        return max(begins, default=0), min(ends, default=0)

    def _has_timed_out(self) -> bool:
        return bool(self.measured(lambda rows: rows["error"] == CODES["timeout"]).any())

    def _only_listen(self) -> bool:
        """Return whether users sent no request, and got messages or heard nothing."""
        if self.measured(lambda rows: rows["sent_ns"]).any():
            return False
        is_silent = self.measured(lambda rows: rows["error"] == CODES["silent"])
        return bool(len(self.messages)) or (len(is_silent) > 0 and bool(is_silent.all()))

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

        The drain at the end is left out; successes of the warm-up that were done later count. See
        :attr:`window`.
        """
        return self.rate(self.chunks())

    def rate(self, parts: Iterable[np.ndarray]) -> float:
        """Return the throughput of some of the rows, over the window of all (per second).

        With windows it is over all their counted parts together; for a closed loop it is then
        estimated from how long requests take (:class:`perflab.load.workload.windows.Cycles`).
        """
        good = (rows[rows["error"] == 0] for rows in parts)
        if self.cycles is None:
            count: float = sum(completed(rows["done_ns"], self.counted) for rows in good)
        else:
            share = sum(len(_of_measure(rows)) for rows in good) / max(1, self.requests_measured)
            count = share * self.requests_counted
        return per_second(count, self.counted_ns)

    @property
    def requests_counted(self) -> float:
        """Return the requests in the measured time; an estimate for closed loops in windows."""
        if self.cycles is None:
            return float(self.requests_measured)
        measured = (rows for _, rows in self.measured_by_worker())
        return self.cycles.requests_in(self.counted_ns, measured, self.pauses)

    @property
    def requests_measured(self) -> int:
        """Return the number of rows of the measure stage."""
        return sum(len(rows) for _, rows in self.measured_by_worker())

    @property
    def connections_opened(self) -> int:
        """Return the number of connections that measured requests opened."""
        return int(self.measured(lambda rows: rows["connect_ns"] > 0).sum())

    @cached_property
    def counted(self) -> np.ndarray:
        """Return the measured times: begins and ends in ns, shape (parts, 2), sorted."""
        if self.windows is None:
            return np.array([self.window])
        parts = self.windows[self.windows[:, COUNTED] < self.windows[:, END], COUNTED:]
        # The load ended before anything counted.
        return parts if len(parts) else np.zeros((1, 2), dtype=np.int64)

    @property
    def counted_ns(self) -> int:
        """Return the length of the measured times, in ns."""
        return int((self.counted[:, 1] - self.counted[:, 0]).sum())

    @cached_property
    def judged_wakeups(self) -> Sequence[Wakeups]:
        """Return the wakeups by which the client is judged, without those between windows."""
        if self.windows is None:
            return self.wakeups
        return [wakeups.within(self.counted) for wakeups in self.wakeups]

    @cached_property
    def response_times(self) -> Times:
        """Return the times from the planned instants to the ends."""
        return self.times("planned_ns")

    @cached_property
    def service_times(self) -> Times:
        """Return the times from sending to the ends."""
        return self.times("sent_ns")

    @cached_property
    def connection_waits(self) -> Times:
        """Return the times from the starts to sending."""
        return self.times("started_ns", "sent_ns")

    def times(
        self, since: str, until: str = "done_ns", chosen: Mapping[int, int] | None = None
    ) -> Times:
        """Return the times of the measure stage between two instants of a request.

        Parameters
        ----------
        chosen : mapping, optional
            Worker to the code of the only template that counts; other workers have none of it.
        """
        parts = {name: [np.zeros(0, dtype=np.int64)] for name in OF_ROWS}
        for worker, part in self.measured_by_worker():
            if chosen is not None:
                part = part[part["template"] == chosen.get(worker, NO_TEMPLATE)]
            arrays = of_rows(self.wakeups[worker], part, since, until, self.pauses)
            for name, values in arrays.items():
                parts[name].append(values)
        joined = {name: np.concatenate(pieces) for name, pieces in parts.items()}
        short_ms, timeout_ns = short_delays_ms(self.judged_wakeups), self.timeout_s * 1e9
        return Times(**joined, short_ms=short_ms, timeout_ns=timeout_ns)

    @cached_property
    def codes(self) -> dict[str, dict[int, int]]:
        """Return the codes of the requests of each name, by worker (see :meth:`times`)."""
        codes: dict[str, dict[int, int]] = {}
        for worker, place in enumerate(self.places):
            for code, name in enumerate(names_in(place, TEMPLATE_NAMES)):
                codes.setdefault(name, {})[worker] = code
        return codes

    def named(self, name: str) -> np.ndarray:
        """Return the rows of the measure stage of the requests of a name."""
        codes = self.codes.get(name, {})
        parts = [
            part[part["template"] == codes.get(worker, NO_TEMPLATE)]
            for worker, part in self.measured_by_worker()
        ]
        return np.concatenate(parts) if parts else np.empty(0, dtype=ROW)

    @cached_property
    def requests(self) -> pd.DataFrame:
        """Return every request of every worker, in the order of their planned instants.

        With windows, ``window`` is the number of the window in which a request was planned.
        """
        frames = [frame(place, number) for number, place in enumerate(self.places)]
        table = pd.concat(frames, ignore_index=True)
        if self.windows is not None:
            table["window"] = window_of(table["planned_ns"].to_numpy(), self.windows)
        return table.sort_values("planned_ns", kind="stable", ignore_index=True)

    @cached_property
    def messages(self) -> pd.DataFrame:
        """Return the messages of all streams, in the order of their instants."""
        frames = [messages(place, number) for number, place in enumerate(self.places)]
        return pd.concat(frames).sort_values("at_ns", kind="stable", ignore_index=True)

    @cached_property
    def progress(self) -> pd.DataFrame:
        """Return the points of the bodies' arrival, by worker, request and instant."""
        return self._joined(progress)

    @cached_property
    def stream_chunks(self) -> pd.DataFrame:
        """Return the chunks of all streamed answers, by worker, request and number."""
        return self._joined(chunks)

    def _joined(self, of: Callable[[Path, int, np.ndarray], pd.DataFrame]) -> pd.DataFrame:
        pairs = zip(self.places, self.rows, strict=True)
        tables = [of(place, number, rows) for number, (place, rows) in enumerate(pairs)]
        return pd.concat(tables, ignore_index=True)

    def without_windows(self, numbers: Sequence[int]) -> LoadResult:
        """Leave some windows out: their requests become part of the warm-up, on disk as well.

        Return the load as it is now; of this object only the rows follow. Numbers beyond the last
        window are ignored: the load ended before them.
        """
        if self.windows is None or not len(numbers):
            return self
        windows, chosen = self.windows.copy(), [at for at in numbers if at < len(self.windows)]
        windows[chosen, COUNTED] = windows[chosen, END]
        for place in self.places:
            part = rows(place, mode="r+")
            left_out = np.isin(window_of(part["planned_ns"], windows), chosen)
            part["stage"][left_out & (part["stage"] == MEASURE)] = WARMUP
        whole = replace(self, windows=windows)
        # The workers' CPU time is of all windows.
        share = whole.counted_ns / max(1, self.counted_ns)
        return replace(whole, cpu_ns=round(self.cpu_ns * share))

    @property
    def failures(self) -> list[str]:
        """Return the masked tracebacks of scripted users, one per kind of failure and worker."""
        places = [place / "failures.txt" for place in self.places]
        return [masked(text) for place in places if place.exists() and (text := place.read_text())]

    @property
    def sockets(self) -> np.ndarray:
        """Return of each WebSocket its last message and its end (s), and whether that was answered.

        Shape (sockets, 3); before the first message its opening counts.
        """
        files = [place / "sockets.json" for place in self.places]
        told = [row for file in files if file.exists() for row in json.loads(file.read_text())]
        return np.array(told, dtype=float).reshape(-1, 3)

    def discard(self) -> None:
        """Remove the raw rows; :attr:`requests` stays if it was read before."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _of_measure(rows: np.ndarray) -> np.ndarray:
    inside = rows["stage"] == MEASURE
    # Most pieces lie wholly inside: no copy of them.
    return rows if inside.all() else rows[inside]
