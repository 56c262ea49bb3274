"""A host's part of a load that several hosts send.

It holds the host's lock and its generator, and sends what it is ordered to. One thread carries the
orders out; another hands them over, looks at the progress and takes what was sent. A part ends when
it is told to, when nobody waits for it any more, and when it has heard nothing for half a minute:
whoever asked may have died.
"""

from __future__ import annotations

import contextlib
import queue
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab.errors import HostBusy, LoadError, TargetRefused
from perflab.load import once
from perflab.load.generator import Gathered, Generator, Share, refuse
from perflab.load.machine_counts import MachineUse
from perflab.load.raw_folders import raw_folder
from perflab.load.stopping import Progress, StopLoad
from perflab.load.targets import addresses, is_loopback, split
from perflab.load.workload import Workload

SILENCE_S = 30.0
LOOK_S = 0.1
PIECE_BYTES = 8 << 20
# What a part is at: it gets ready, waits for an order, sends, or has sent.
STARTING, READY, SENDING, SENT = "starting", "ready", "sending", "sent"


@dataclass(frozen=True)
class PartOrder:
    """One load as a host is to carry it out: ``start_ns`` is by the host's own clock."""

    workload: dict[str, Any]
    url: str
    allowed: tuple[str, ...]
    share: Share
    start_ns: int


@dataclass(frozen=True)
class Seen:
    """What a part is at, its workers, and its progress, with the counts since the last look."""

    state: str
    workers: int
    progress: Progress


@dataclass(frozen=True)
class Sent:
    """What a part left: its workers' reports, and worker, name and bytes of each raw file."""

    reports: list[dict[str, Any]]
    machine: MachineUse
    files: list[tuple[int, str, int]]


class Part:
    """What the calls and the task of one part share.

    Parameters
    ----------
    is_wanted : callable
        Says whether anybody still waits for it.
    clock : callable
        Seconds that only grow.
    """

    def __init__(
        self, is_wanted: Callable[[], bool], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._is_wanted = is_wanted
        self._clock = clock
        self._heard_s = clock()
        self._lock = threading.Lock()
        self._orders: queue.Queue[PartOrder] = queue.Queue()
        self._state = STARTING
        self._workers = 0
        self._progress = Progress()
        self._stop: StopLoad | None = None
        self._why = ""
        self._told_to_end = False
        self._folder: Path | None = None
        self._gathered: Gathered | None = None

    # ---- by whoever asks for the load

    def hear(self) -> None:
        """Note that whoever asked is there."""
        self._heard_s = self._clock()

    def see(self) -> Seen:
        """Return what it is at; the counts of its progress are handed over once."""
        with self._lock:
            seen = Seen(self._state, self._workers, self._progress)
            self._progress = _without_counts(self._progress)
        return seen

    def take(self, order: PartOrder) -> None:
        """Take an order; what the last one left is removed."""
        self._let_go()
        with self._lock:
            self._state, self._progress, self._stop = SENDING, Progress(), None
        self._orders.put(order)

    def stop(self, reason: str, within_s: float | None) -> None:
        """Have the load under way end in order; see :class:`StopLoad`."""
        self._stop = self._stop or StopLoad(reason, within_s)

    def end(self, why: str = "") -> None:
        """Have it end; with a reason, what is under way has failed by it."""
        self._why = why
        self._told_to_end = True

    def sent(self) -> Sent:
        """Return what the last load left."""
        assert self._gathered is not None
        assert self._folder is not None
        files = [
            (int(path.parent.name), path.name, path.stat().st_size)
            for path in sorted(self._folder.glob("*/*"))
        ]
        return Sent(self._gathered.reports, self._gathered.machine, files)

    def piece(self, worker: int, name: str, offset: int) -> bytes:
        """Return what a raw file holds from an offset on, but not too much of it."""
        assert self._folder is not None
        with (self._folder / str(worker) / name).open("rb") as file:
            file.seek(offset)
            return file.read(PIECE_BYTES)

    # ---- by the thread that sends it

    def check(self) -> None:
        """Raise what ends the load under way, if anything does.

        Raises
        ------
        StopLoad
            It is to end in order.
        LoadError
            As of :meth:`check_wanted`.
        """
        self.check_wanted()
        if self._stop is not None:
            raise self._stop

    def check_wanted(self) -> None:
        """Raise LoadError where nobody waits for it, or this worker leaves."""
        if self._told_to_end:
            raise LoadError(self._why or "it was told to end")
        silent_s = self._clock() - self._heard_s
        if silent_s > SILENCE_S:
            raise LoadError(f"nothing was heard of who asked for the load for {silent_s:.0f} s")
        if not self._is_wanted():
            raise LoadError("nobody waits for the load any more")

    @contextlib.contextmanager
    def ready(self, workers: int, wait_s: float) -> Iterator[Generator]:
        """Hold this host's lock and load workers; see :func:`once.ready`."""
        deadline = time.monotonic() + wait_s
        with contextlib.ExitStack() as held:
            while True:
                try:
                    generator = held.enter_context(once.ready(workers))
                    break
                except HostBusy:
                    if time.monotonic() >= deadline:
                        raise
                    self.check_wanted()
                    time.sleep(LOOK_S)
            with self._lock:
                self._state, self._workers = READY, len(generator.pids)
            yield generator

    def serve(self, generator: Generator) -> None:
        """Carry orders out until it is told to end.

        Raises
        ------
        PerflabError
            A load failed, or nobody waits for one any more.
        """
        while not (self._told_to_end and not self._why):
            self.check_wanted()
            with contextlib.suppress(queue.Empty):
                self._carry_out(self._orders.get(timeout=LOOK_S), generator)

    def _carry_out(self, order: PartOrder, generator: Generator) -> None:
        workload = Workload.model_validate(order.workload)
        refuse(workload, order.url, order.allowed)
        refuse_own(order.url)
        self._folder = raw_folder()
        self._gathered = generator.gather(
            workload, order.url, self._folder, order.start_ns,
            self._note, self.check, order.allowed, share=order.share,
        )  # fmt: skip
        with self._lock:
            self._state = SENT

    def _note(self, progress: Progress) -> None:
        with self._lock:
            progress.counts += self._progress.counts
            self._progress = progress

    def _let_go(self) -> None:
        folder, self._folder, self._gathered = self._folder, None, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Remove what the last load left."""
        self._let_go()


def _without_counts(progress: Progress) -> Progress:
    return Progress(progress.finished, progress.measured, progress.failed, progress.in_flight)


def refuse_own(url: str) -> None:
    """Refuse a name that means this very host: every host would load itself.

    Raises
    ------
    TargetRefused
        Its address is loopback.
    """
    origin, _ = split(url)
    try:
        found = addresses(origin)
    except OSError:
        return  # a name that nobody knows is an answer of the load
    own = [where[0] for _, where in found if is_loopback(where[0])]
    if own:
        raise TargetRefused(
            f"'{origin.host}' is {own[0]} here, this host itself: give an address that all hosts "
            "reach"
        )
