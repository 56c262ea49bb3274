"""``perflab load``: send load to an address and see what it takes."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perflab.errors import ParameterError

if TYPE_CHECKING:
    from perflab.load.command import Options
    from perflab.load.stopping import Progress
    from perflab.load.workload import Workload

ARRIVALS, REQUEST, ENDING, OUTPUT = "Arrivals", "Request", "Ending", "Output"


def _option(text: str, panel: str, *names: str) -> typer.models.OptionInfo:
    return typer.Option(*names, help=text, rich_help_panel=panel)  # type: ignore[no-any-return]


def command(
    url: Annotated[str, typer.Argument(help="address, like http://127.0.0.1:8000/path")],
    users: Annotated[int, _option("closed loop: users who wait for answers", ARRIVALS)] = 0,
    rate: Annotated[float, _option("open loop: requests per second", ARRIVALS)] = 0.0,
    stages: Annotated[str, _option("open loop in stages: 100:10,100-500:30", ARRIVALS)] = "",
    user_stages: Annotated[
        str, _option("closed loop, users come and go: 0-50:10,50:60,50-0:10", ARRIVALS)
    ] = "",
    burst: Annotated[int, _option("this many requests at one instant", ARRIVALS)] = 0,
    script: Annotated[
        str, _option("users of a Python class: FILE.py:Class (see perflab.load.users)", ARRIVALS)
    ] = "",
    script_parameter: Annotated[
        list[str] | None, _option("key=value for the script; repeatable", ARRIVALS)
    ] = None,
    arrivals: Annotated[str, _option("gaps: constant or poisson", ARRIVALS)] = "constant",
    seed: Annotated[int, _option("of Poisson arrivals", ARRIVALS)] = 0,
    think_time: Annotated[float, _option("seconds between answer and request", ARRIVALS)] = 0.0,
    pacing: Annotated[float, _option("seconds between a user's requests", ARRIVALS)] = 0.0,
    ramp: Annotated[float, _option("seconds over which users join", ARRIVALS)] = 0.0,
    warmup: Annotated[float, _option("seconds before, recorded apart", ARRIVALS)] = 0.0,
    method: Annotated[str, _option("GET, or POST with a body", REQUEST, "--method", "-X")] = "",
    header: Annotated[
        list[str] | None, _option("'Name: value'; repeatable", REQUEST, "--header", "-H")
    ] = None,
    body: Annotated[str, _option("body, or @FILE", REQUEST)] = "",
    data: Annotated[
        str, _option("JSON lines; $name in path, headers and body is filled in turn", REQUEST)
    ] = "",
    connection: Annotated[str, _option("keep-alive or per-request", REQUEST)] = "keep-alive",
    connections: Annotated[
        int, _option("cap on open connections (0: users, or 2000)", REQUEST)
    ] = 0,
    timeout: Annotated[float, _option("seconds a request may take", REQUEST)] = 30.0,
    expect_status: Annotated[int, _option("other statuses are errors", REQUEST)] = 200,
    expect_body: Annotated[str, _option("must occur in every body", REQUEST)] = "",
    redirects: Annotated[int, _option("redirects to follow", REQUEST)] = 0,
    client: Annotated[str, _option("lean, aiohttp or httpx", REQUEST)] = "lean",
    insecure: Annotated[bool, _option("do not verify TLS", REQUEST, "--insecure")] = False,
    ca_file: Annotated[str, _option("trust this CA bundle", REQUEST)] = "",
    allow_target: Annotated[
        list[str] | None, _option("a host other than loopback you may load; repeatable", REQUEST)
    ] = None,
    requests: Annotated[int, _option("end after this many", ENDING, "--requests", "-n")] = 0,
    duration: Annotated[
        float, _option("end after seconds (default 10)", ENDING, "--duration", "-d")
    ] = 0.0,
    stop_failures: Annotated[int, _option("end after this many failures", ENDING)] = 0,
    stop_failure_share: Annotated[float, _option("end above this share", ENDING)] = 0.0,
    objective: Annotated[
        list[str] | None,
        _option("end when missed: 'p99<1000ms/5s' (over 5 s); repeatable", ENDING),
    ] = None,
    find_capacity: Annotated[
        bool,
        _option(
            "search the highest --rate or --users that meets the objectives",
            ENDING,
            "--find-capacity",
        ),
    ] = False,
    workers: Annotated[int, _option("processes (0: one per client core)", OUTPUT)] = 0,
    out: Annotated[str, _option("new folder for requests.parquet and load.json", OUTPUT)] = "",
    as_json: Annotated[bool, _option("print one JSON object", OUTPUT, "--json")] = False,
    strict: Annotated[
        bool, _option("exit status 3 when the numbers are not valid", OUTPUT, "--strict")
    ] = False,
    wait: Annotated[float, _option("seconds to wait for another measurement", OUTPUT)] = 0.0,
) -> None:
    """Send load to an address; every number is shown to be valid, or marked as not.

    Ctrl-C ends the load in order and shows what was measured. Times count from the instant a
    request was planned for, so a wait for a frozen server is never left out.
    """
    from perflab.load.command import Options, workload

    options = Options(
        url=url, users=users, rate=rate, stages=stages, user_stages=user_stages,
        burst=burst, script=script,
        script_parameters=script_parameter or (), arrivals=arrivals, seed=seed,
        requests=requests, duration=duration, warmup=warmup, think_time=think_time,
        pacing=pacing, ramp=ramp, connection=connection, connections=connections,
        timeout=timeout, method=method, headers=header or (), body=body, data=data,
        expect_status=expect_status, expect_body=expect_body, redirects=redirects, client=client,
        insecure=insecure, ca_file=ca_file, stop_failures=stop_failures,
        stop_failure_share=stop_failure_share, objectives=objective or (),
        allow_targets=allow_target or (),
    )  # fmt: skip
    for name in ("users", "rate", "requests", "duration", "burst"):
        value = getattr(options, name)
        if value < 0:
            options.problems.append(f"--{name} {value:g} is negative")
    if workers < 0:
        options.problems.append(f"--workers {workers} is negative")
    folder = Path(out) if out else None
    if folder is not None and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        options.problems.append(f"--out {out} exists; name a new folder, nothing is overwritten")
    made = workload(options)
    if find_capacity:
        _find_capacity(made, options, workers, wait, as_json)
        return
    from perflab.load import once, report

    show = _Live()
    with _interrupt() as look:
        shown, failures = once.carry_out(
            made,
            url,
            allowed=options.allow_targets,
            workers=workers,
            wait_s=wait,
            out=folder,
            on_progress=show,
            look=look,
        )
    show.end()
    for text in failures:
        print(f"the script failed:\n{text}", file=sys.stderr)
    print(json.dumps(shown) if as_json else report.table(shown))
    if folder is not None and not as_json:
        print(f"\n{folder / 'requests.parquet'}\n{folder / 'load.json'}")
    if strict and not shown["valid"]:
        raise typer.Exit(3)


def _find_capacity(
    made: Workload, options: Options, workers: int, wait: float, as_json: bool
) -> None:
    """Search the highest level, tell of every probe, and say where the limit lies."""
    from perflab.load import capacity, once, report
    from perflab.load.command import DEFAULT_PROBE_S, HIGHEST_RATE, HIGHEST_USERS
    from perflab.load.selfcheck import check

    problems = []
    if not made.stop.objectives:
        problems.append("--find-capacity needs an --objective, like 'p99<100ms'")
    for objective in made.stop.objectives:
        if objective.percentile not in report.SMALLEST_N:
            known = ", ".join(f"p{share}" for share in report.SMALLEST_N)
            problems.append(f"--find-capacity judges {known}, not p{objective.percentile:g}")
    if not (options.users or options.rate):
        problems.append("--find-capacity needs --users or --rate, where the search begins")
    if problems:
        raise ParameterError("perflab load", problems)
    length_s = options.duration or DEFAULT_PROBE_S
    by_users = options.users > 0

    with once.place() as place, once.ready(workers, wait) as generator, _interrupt() as look:

        def probe(level: float) -> capacity.Probe:
            load = capacity.at_level(made, level, length_s, options.warmup or 0.2 * length_s)
            result = generator.run(
                load, options.url, check=look, allowed=options.allow_targets, folder=place / "raw"
            )
            found = capacity.judged(
                level, report.summary(result, load, check(result, load)), made.stop.objectives
            )
            result.discard()
            if result.stopped:
                raise KeyboardInterrupt
            state = "; ".join(found.faults or found.unclear or found.missed) or "held"
            print(f"{level:12.5g}  {state}", file=sys.stderr, flush=True)
            return found

        limit = capacity.search(
            probe,
            options.users or options.rate,
            HIGHEST_USERS if by_users else HIGHEST_RATE,
            whole=by_users,
        )
    if as_json:
        shown = {"low": limit.low, "high": limit.high, "limit": limit.limit}
        probes = [
            {
                "level": item.level,
                "missed": item.missed,
                "faults": item.faults,
                "unclear": item.unclear,
                **item.shown,
            }
            for item in limit.probes
        ]
        print(json.dumps({**shown, "sentence": limit.sentence, "probes": probes}))
        return
    print(f"capacity in {'users' if by_users else 'requests/s'}: {limit.sentence}")


@contextmanager
def _interrupt() -> Iterator[Callable[[], None]]:
    """Yield a check that ends the load in order once SIGINT or SIGTERM has come."""
    from perflab.load.stopping import StopLoad

    came: list[int] = []
    kept = {
        number: signal.signal(number, lambda number, _: came.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }

    def look() -> None:
        if came:
            raise StopLoad("interrupted")

    try:
        yield look
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


class _Live:
    """One standing line on a terminal, or a line every ten seconds elsewhere; on stderr."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._began = self._last = time.monotonic()
        self._finished = 0

    def __call__(self, progress: Progress) -> None:
        from perflab.load.stopping import percentile_ms

        now = time.monotonic()
        if now - self._last < (0.2 if self._terminal else 10.0):
            return
        rate = (progress.finished - self._finished) / (now - self._last)
        self._last, self._finished = now, progress.finished
        middle = percentile_ms(progress.counts, 50)
        text = (
            f"{now - self._began:6.1f} s  {progress.finished} done, {rate:.0f}/s, "
            f"{progress.failed} failed, {progress.in_flight} under way, p50 {middle:.2f} ms"
        )
        sys.stderr.write(f"\r\x1b[K{text}" if self._terminal else f"{text}\n")
        sys.stderr.flush()

    def end(self) -> None:
        """Remove the standing line."""
        if self._terminal:
            sys.stderr.write("\r\x1b[K")
