"""``perflab load``: sends load to an address and reports the results."""

from __future__ import annotations

import inspect
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from perflab.cli.load_search import search_capacity, search_problems
from perflab.cli.load_status import Status, status_of
from perflab.errors import ParameterError

if TYPE_CHECKING:
    from perflab.load.options import LoadOptions
    from perflab.load.workers.generator import Progress

SENDING, OUTPUT, ENDING = "Sending", "Output", "Ending"
OF_THE_COMMAND: tuple[tuple[str, Any, str, str, str], ...] = (
    ("find_capacity", False, "search the highest --rate or --users that meets the objectives",
     ENDING, "--find-capacity"),
    ("workers", 0, "processes (0: one per client core)", SENDING, "--workers"),
    ("out", "", "new folder for load.json and tables: requests, messages, chunks", OUTPUT, "--out"),
    ("as_json", False, "print one JSON object", OUTPUT, "--json"),
    ("wait", 0.0, "seconds to wait until another measurement ends", SENDING, "--wait"),
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
    option cannot be read; 3 the numbers are INVALID (also where answers under load are of other
    kinds than those before), or too few for an objective; 4 every request failed; 99 an objective
    was missed or --stop-after-failures was reached; 130 interrupted. If several apply: the first of
    130, 4, 3, 99.

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
        problems += search_problems(options, workload, {"--out": out})
    if problems:
        raise ParameterError("perflab load", problems)
    if find_capacity:
        search_capacity(workload, options, workers, wait, as_json)
        return
    show = Live()
    with once.interruptible() as check_stop:
        sent = once.carry_out(
            workload, options.url, allowed=options.allow_targets, workers=workers, wait_s=wait,
            out=Path(out) if out else None, on_progress=show, check_stop=check_stop,
        )  # fmt: skip
    show.end()
    for text in sent.failures:
        print(f"the script failed:\n{text}", file=sys.stderr)
    print(json.dumps(sent.model_dump(mode="json")) if as_json else table(sent))
    if out and not as_json:
        print("\n" + "\n".join(map(str, sorted(Path(out).iterdir()))))
    if sent.unwritten:
        print(f"perflab: {sent.unwritten}", file=sys.stderr)
        raise typer.Exit(Status.ERROR)
    raise typer.Exit(status_of(sent))


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
