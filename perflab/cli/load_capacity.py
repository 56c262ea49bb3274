"""``perflab load --find-capacity``: the search, told probe by probe."""

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
    """The exit statuses: 99 is k6's for a missed threshold, 2 typer's for words it cannot read."""

    GOOD = 0
    ERROR = 1
    INVALID = 3
    ALL_FAILED = 4
    MISSED = 99
    INTERRUPTED = 130


def status_of(shown: Mapping[str, Any]) -> Status:
    """Return the exit status for a summary (see ``report.summary``)."""
    held = [each["held"] for each in shown["objectives"]]
    if shown["stopped"] == INTERRUPTION:
        return Status.INTERRUPTED
    if shown["requests"] and shown["errors"] == shown["requests"]:
        return Status.ALL_FAILED
    # What cannot be judged has not been shown to hold.
    if not shown["valid"] or (None in held and False not in held):
        return Status.INVALID
    return Status.MISSED if False in held or "stop" in shown else Status.GOOD


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Yield a check that ends the load in order once SIGINT or SIGTERM has come."""
    from perflab.load.workers.generator import StopLoad

    came: list[int] = []
    kept = {
        number: signal.signal(number, lambda number, _: came.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }

    def look() -> None:
        if came:
            raise StopLoad(INTERRUPTION)

    try:
        yield look
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


class Live:
    """One standing line on a terminal, or a line every ten seconds elsewhere; on stderr."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._began = self._last = time.monotonic()
        self._finished = 0

    def __call__(self, progress: Progress) -> None:
        from perflab.load.workers.generator import percentile_ms

        now = time.monotonic()
        if now - self._last < (0.2 if self._terminal else 10.0):
            return
        rate = (progress.finished - self._finished) / (now - self._last)
        self._last, self._finished = now, progress.finished
        middle = percentile_ms(progress.counts, 50)
        # NaN while nothing has succeeded.
        shown = f", p50 {middle:.2f} ms" if middle == middle else ""
        text = (
            f"{now - self._began:6.1f} s  {progress.finished} done, {rate:.0f}/s, "
            f"{progress.failed} failed, {progress.in_flight} under way{shown}"
        )
        sys.stderr.write(f"\r\x1b[K{text}" if self._terminal else f"{text}\n")
        sys.stderr.flush()

    def end(self) -> None:
        """Remove the standing line."""
        if self._terminal:
            sys.stderr.write("\r\x1b[K")


DEFAULT_PROBE_S = 3.0
HIGHEST_RATE = 200_000.0
HIGHEST_USERS = 20_000


def problems(asked: LoadOptions, made: Workload, outputs: Mapping[str, str]) -> list[str]:
    """Return what a search lacks, and what it would leave unused."""
    from perflab.statistics.percentiles import OF_LOADS

    known = ", ".join(f"p{share:g}" for share in OF_LOADS)
    found = [
        f"--find-capacity judges {known}, not p{each.percentile:g}"
        for each in made.objectives
        if each.percentile not in OF_LOADS
    ]
    if not asked.objectives:
        found.append("--find-capacity needs an --objective, like 'p99<100ms'")
    if not (asked.users or asked.rate):
        found.append("--find-capacity needs --users or --rate, where the search begins")
    unused = {**outputs, "--script": asked.script, "--requests": asked.requests}
    return found + [
        f"{flag} does not go with --find-capacity, which makes many loads"
        for flag, value in unused.items()
        if value
    ]


def search(made: Workload, asked: LoadOptions, workers: int, wait: float, as_json: bool) -> None:
    """Search the highest level, tell of every probe, and say where the limit lies."""
    from perflab.load import capacity, once
    from perflab.load.records.record import place

    length_s = asked.duration_s or DEFAULT_PROBE_S
    by_users = asked.users > 0

    with place(None, made) as here, once.ready(workers, wait) as generator, interruptible() as look:

        def sent(load: Workload) -> LoadResult:
            result = generator.run(
                load, asked.url, check=look, allowed=asked.allow_targets, folder=here.raw
            )
            if result.stopped:
                result.discard()
                raise KeyboardInterrupt
            return result

        def probe(level: float) -> capacity.Probe:
            found = capacity.probed(sent, made, level, length_s, asked.warmup_s or 0.2 * length_s)
            state = "; ".join(map(str, found.faults or found.unclear or found.missed)) or "held"
            print(f"{level:12.5g}  {state}", file=sys.stderr, flush=True)
            return found

        highest = HIGHEST_USERS if by_users else HIGHEST_RATE
        limit = capacity.search(probe, asked.users or asked.rate, highest, whole=by_users)
    if as_json:
        shown = {"low": limit.low, "high": limit.high, "limit": limit.limit}
        probes = [
            {
                "level": item.level,
                "missed": item.missed,
                "faults": [each.model_dump() for each in item.faults],
                "unclear": [each.model_dump() for each in item.unclear],
                **item.shown,
            }
            for item in limit.probes
        ]
        print(json.dumps({**shown, "sentence": limit.sentence, "probes": probes}))
    else:
        print(f"capacity in {'users' if by_users else 'requests/s'}: {limit.sentence}")
    if not limit.low:
        # No level held: by the client's fault, or because every level missed the objective.
        raise typer.Exit(Status.MISSED if limit.limit == "server" else Status.INVALID)
