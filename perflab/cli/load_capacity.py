"""``perflab load --find-capacity``: the search, reported probe by probe."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from perflab.load.options import LoadOptions
    from perflab.load.records.result import LoadResult
    from perflab.load.workers.generator import Progress
    from perflab.load.workload import Workload

INTERRUPTION = "interrupted"


class Status(IntEnum):
    """The exit statuses; 99 is that of k6 for a missed threshold, and typer uses 2."""

    GOOD = 0
    ERROR = 1
    INVALID = 3
    ALL_FAILED = 4
    MISSED = 99
    INTERRUPTED = 130


def status_of(shown: Mapping[str, Any]) -> Status:
    """Return the exit status for a summary (see ``report.summary``)."""
    held = [objective["held"] for objective in shown["objectives"]]
    if shown["stopped"] == INTERRUPTION:
        return Status.INTERRUPTED
    if shown["requests"] and shown["errors"] == shown["requests"]:
        return Status.ALL_FAILED
    # An objective that cannot be judged is not shown to hold.
    if not shown["valid"] or (None in held and False not in held):
        return Status.INVALID
    return Status.MISSED if False in held or "stop" in shown else Status.GOOD


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Yield a check that ends the load in order after SIGINT or SIGTERM."""
    from perflab.load.workers.generator import StopLoad

    received: list[int] = []
    handlers = {
        number: signal.signal(number, lambda number, _: received.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }

    def look() -> None:
        if received:
            raise StopLoad(INTERRUPTION)

    try:
        yield look
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


class Live:
    """Shows progress on stderr: one line that changes on a terminal, else a line every 10 s."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._began = self._last = time.monotonic()
        self._finished = 0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._last < (0.2 if self._terminal else 10.0):
            return
        rate = (progress.finished - self._finished) / (now - self._last)
        self._last, self._finished = now, progress.finished
        text = (
            f"{now - self._began:6.1f} s  {progress.finished} done, {rate:.0f}/s, "
            f"{progress.failed} failed, {progress.in_flight} in flight"
        )
        sys.stderr.write(f"\r\x1b[K{text}" if self._terminal else f"{text}\n")
        sys.stderr.flush()

    def end(self) -> None:
        """Remove the line from the terminal."""
        if self._terminal:
            sys.stderr.write("\r\x1b[K")


DEFAULT_PROBE_S = 3.0
HIGHEST_RATE = 200_000.0
HIGHEST_USERS = 20_000


def problems(options: LoadOptions, workload: Workload, outputs: Mapping[str, str]) -> list[str]:
    """Return the options that a search lacks, and those that it cannot use."""
    from perflab.statistics.quantiles import OF_LOADS

    known = ", ".join(f"p{share:g}" for share in OF_LOADS)
    texts = [
        f"--find-capacity judges {known}, not p{objective.percentile:g}"
        for objective in workload.objectives
        if objective.percentile not in OF_LOADS
    ]
    if not options.objectives:
        texts.append("--find-capacity needs an --objective, like 'p99<100ms'")
    if not (options.users or options.rate):
        texts.append("--find-capacity needs --users or --rate to begin with")
    unused = {**outputs, "--script": options.script, "--requests": options.requests}
    return texts + [
        f"{flag} does not go with --find-capacity, which sends many loads"
        for flag, value in unused.items()
        if value
    ]


def search(
    workload: Workload, options: LoadOptions, workers: int, wait: float, as_json: bool
) -> None:
    """Search the highest level, print every probe, and print the limit."""
    from perflab.load import capacity, once
    from perflab.load.records.record import place

    length_s = options.duration_s or DEFAULT_PROBE_S
    by_users = options.users > 0

    with (
        place(None, workload) as here,
        once.ready(workers, wait) as generator,
        interruptible() as look,
    ):

        def send(load: Workload) -> LoadResult:
            result = generator.run(
                load, options.url, check=look, allowed=options.allow_targets, folder=here.raw
            )
            if result.stopped:
                result.discard()
                raise KeyboardInterrupt
            return result

        def probe(level: float) -> capacity.Probe:
            result = capacity.probed(
                send, workload, level, length_s, options.warmup_s or 0.2 * length_s
            )
            state = "; ".join(map(str, result.faults or result.unclear or result.missed)) or "held"
            print(f"{level:12.5g}  {state}", file=sys.stderr, flush=True)
            return result

        highest = HIGHEST_USERS if by_users else HIGHEST_RATE
        limit = capacity.search(probe, options.users or options.rate, highest, whole=by_users)
    if as_json:
        shown = {"low": limit.low, "high": limit.high, "limit": limit.limit}
        probes = [
            {
                "level": item.level,
                "missed": item.missed,
                "faults": [reason.model_dump() for reason in item.faults],
                "unclear": [reason.model_dump() for reason in item.unclear],
                **item.shown,
            }
            for item in limit.probes
        ]
        print(json.dumps({**shown, "sentence": limit.sentence, "probes": probes}))
    else:
        print(f"capacity in {'users' if by_users else 'requests/s'}: {limit.sentence}")
    if not limit.low:
        # No level held, because of the client or because every level missed the objective.
        raise typer.Exit(Status.MISSED if limit.limit == "server" else Status.INVALID)
