"""``perflab load``: sends load to an address and reports the results."""

from __future__ import annotations

import inspect
import json
import sys
import time
from collections.abc import Callable, Mapping
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from perflab.errors import ParameterError

if TYPE_CHECKING:
    from perflab.load.options import LoadOptions
    from perflab.load.records.result import LoadResult
    from perflab.load.workers.generator import Progress
    from perflab.load.workload import Workload

SENDING, OUTPUT, ENDING = "Sending", "Output", "Ending"
OF_THE_COMMAND: tuple[tuple[str, Any, str, str, str], ...] = (
    ("find_capacity", False, "search the highest --rate or --users that meets the objectives",
     ENDING, "--find-capacity"),
    ("workers", 0, "processes (0: one per client core)", SENDING, "--workers"),
    ("out", "", "new folder for load.json and tables: requests, messages, chunks", OUTPUT, "--out"),
    ("as_json", False, "print one JSON object", OUTPUT, "--json"),
    ("wait", 0.0, "seconds to wait for another measurement", SENDING, "--wait"),
)  # fmt: skip
_BY_NAME = inspect.Parameter.KEYWORD_ONLY


class LoadCommand(TyperCommand):
    """A command with the options of a load, which are made on first use: their import is slow."""

    _load_options: list[Any]

    @property
    def params(self) -> list[Any]:
        """The options of a load, and those of the command."""
        if not self._load_options:
            app = typer.Typer(add_completion=False)
            app.command()(_with_options())
            command = typer.main.get_command(app)
            self._load_options, self.callback = command.params, command.callback
        return self._load_options

    @params.setter
    def params(self, options: list[Any]) -> None:
        self._load_options = options


def command() -> None:
    """Send load to an address; doubtful numbers are marked.

    Ctrl-C ends the load in order and shows the results so far. Times count from the planned instant
    of a request, so they include the wait for a frozen server.

    Streams: perflab load --users 20 --stream sse --end-marker '[DONE]' URL shows the time to the
    first chunk, the gaps between chunks and chunks per second.

    Until it fails: perflab load --users 500 --ramp 480 --pacing 20 --duration 480
    --stop-after-failures 5 URL shows when the fifth failure came, with how many users, and the
    requests that ended before and after it. Times and throughput cover those before it.

    Exit status: 0 the numbers are valid and every objective was held; 1 an error, see stderr; 2 an
    option cannot be read; 3 the numbers are INVALID, or too few for an objective; 4 every request
    failed; 99 an objective was missed or --stop-after-failures was reached; 130 interrupted. If
    several apply: the first of 130, 4, 3, 99.

    Example: perflab load http://127.0.0.1:8000/ --users 20 --duration 10

    Example: perflab load http://127.0.0.1:8000/ --rate 500 --objective 'p99<100ms'
    """


def _with_options() -> Callable[..., None]:
    """Return a function that has every option as a parameter and carries out the load."""
    from perflab.load.options import OPTIONS, LoadOptions, flag_of

    address = typer.Argument(help="address, like http://127.0.0.1:8000/path")
    parameters = {"url": inspect.Parameter("url", _BY_NAME, annotation=Annotated[str, address])}
    for name, field in OPTIONS.items():
        if isinstance(field.json_schema_extra, dict):
            extra: Any = field.json_schema_extra
            flags = extra["names"] or [flag_of(name)]
            text = str(field.description)
            parameters[name] = _parameter(name, field.default, text, extra["panel"], *flags)
    all_parameters = [
        *parameters.values(),
        *(_parameter(*parameter) for parameter in OF_THE_COMMAND),
    ]

    def send(**values: Any) -> None:
        _load(LoadOptions.of({name: values.pop(name) for name in parameters}), **values)

    send.__signature__ = inspect.Signature(all_parameters)  # type: ignore[attr-defined]
    send.__annotations__ = {parameter.name: parameter.annotation for parameter in all_parameters}
    return send


def _parameter(name: str, default: Any, text: str, panel: str, *flags: str) -> inspect.Parameter:
    # Most defaults are 0 or empty, which would tell a reader little.
    flag = typer.Option(*flags, help=text, rich_help_panel=panel, show_default=False)
    if isinstance(default, tuple):
        return inspect.Parameter(name, _BY_NAME, default=[], annotation=Annotated[list[str], flag])
    kind = type(default)
    return inspect.Parameter(name, _BY_NAME, default=default, annotation=Annotated[kind, flag])


def _load(
    options: LoadOptions, *, find_capacity: bool, workers: int, out: str, as_json: bool, wait: float
) -> None:
    from perflab.load import once
    from perflab.load.records.record import folder_problems
    from perflab.load.summary_table import table

    workload = options.workload()
    problems = folder_problems("--out", Path(out)) if out else []
    if workers < 0:
        problems.append(f"--workers {workers} is negative")
    if find_capacity:
        problems += _search_problems(options, workload, {"--out": out})
    if problems:
        raise ParameterError("perflab load", problems)
    if find_capacity:
        _search(workload, options, workers, wait, as_json)
        return
    show = Live()
    with once.interruptible() as look:
        sent = once.carry_out(
            workload, options.url, allowed=options.allow_targets, workers=workers, wait_s=wait,
            out=Path(out) if out else None, on_progress=show, look=look,
        )  # fmt: skip
    show.end()
    for text in sent.failures:
        print(f"the script failed:\n{text}", file=sys.stderr)
    print(json.dumps(sent.shown) if as_json else table(sent.shown))
    if out and not as_json:
        print("\n" + "\n".join(map(str, sorted(Path(out).iterdir()))))
    if sent.unwritten:
        print(f"perflab: {sent.unwritten}", file=sys.stderr)
        raise typer.Exit(Status.ERROR)
    raise typer.Exit(status_of(sent.shown))


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
    from perflab.load.once import INTERRUPTION

    held = [objective["held"] for objective in shown["objectives"]]
    if shown["stopped"] == INTERRUPTION:
        return Status.INTERRUPTED
    if shown["requests"] and shown["errors"] == shown["requests"]:
        return Status.ALL_FAILED
    # An objective that cannot be judged is not shown to hold.
    if not shown["valid"] or (None in held and False not in held):
        return Status.INVALID
    return Status.MISSED if False in held or "stop" in shown else Status.GOOD


class Live:
    """Shows progress on stderr: one line that changes on a terminal, else a line every 10 s."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        # The first progress tells that the load has begun: it may have waited for its turn.
        self._began = self._last = 0.0
        self._finished = 0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        self._began = self._began or now
        self._last = self._last or now
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
# What each step of a search shows: latency against the load.
STEP_TIMES = ("p50", "p95", "p99")
HIGHEST_RATE = 200_000.0
HIGHEST_USERS = 20_000


def _search_problems(
    options: LoadOptions, workload: Workload, outputs: Mapping[str, str]
) -> list[str]:
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


def _search(
    workload: Workload, options: LoadOptions, workers: int, wait: float, as_json: bool
) -> None:
    """Search the highest level, print every probe, and print the limit."""
    from perflab.load import capacity, once
    from perflab.load.records.record import place

    length_s = options.duration_s or DEFAULT_PROBE_S
    by_users = options.users > 0
    what = "users" if by_users else "requests/s"
    print(f"each number of {what} is tried twice, and again if that disagrees", file=sys.stderr)

    with (
        place(None, workload) as here,
        once.interruptible() as look,
        once.ready(workers, wait, look) as generator,
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
            times = result.shown["response_time_ms"]
            known = [f"{name} {times[name]:.4g}" for name in STEP_TIMES if times[name] is not None]
            shown = f"  {', '.join(known)} ms" if known else ""
            print(f"{level:12.5g}{shown}  {state}", file=sys.stderr, flush=True)
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
        print(f"capacity in {what}: {limit.sentence}")
    if not limit.low:
        # No level held, because of the client or because every level missed the objective.
        raise typer.Exit(Status.MISSED if limit.limit == "server" else Status.INVALID)
