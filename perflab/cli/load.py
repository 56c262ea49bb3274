"""``perflab load``: sends load to an address and reports the results."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perflab.cli.flags import load_flag, panel_option
from perflab.cli.load_status import Status, status_of
from perflab.errors import ParameterError
from perflab.load.flags import ENDING, FLAGS

if TYPE_CHECKING:
    from perflab.load.workers.generator import Progress

SENDING, OUTPUT = "Sending", "Output"


def command(
    url: Annotated[str, typer.Argument(help="address, like http://127.0.0.1:8000/path")],
    users: Annotated[int | None, load_flag("users")] = None,
    think_time: Annotated[float | None, load_flag("think_time")] = None,
    rate: Annotated[float | None, load_flag("rate")] = None,
    arrivals: Annotated[str | None, load_flag("arrivals")] = None,
    warmup: Annotated[float | None, load_flag("warmup")] = None,
    script: Annotated[str | None, load_flag("script")] = None,
    stages: Annotated[str | None, load_flag("stages")] = None,
    burst: Annotated[int | None, load_flag("burst")] = None,
    seed: Annotated[int | None, load_flag("seed")] = None,
    pacing: Annotated[float | None, load_flag("pacing")] = None,
    ramp: Annotated[float | None, load_flag("ramp")] = None,
    method: Annotated[str | None, load_flag("method")] = None,
    headers: Annotated[list[str] | None, load_flag("headers")] = None,
    header_file: Annotated[str | None, load_flag("header_file")] = None,
    secret: Annotated[list[str] | None, load_flag("secret")] = None,
    body: Annotated[str | None, load_flag("body")] = None,
    expect_status: Annotated[str | None, load_flag("expect_status")] = None,
    expect_body: Annotated[str | None, load_flag("expect_body")] = None,
    connection: Annotated[str | None, load_flag("connection")] = None,
    timeout: Annotated[float | None, load_flag("timeout", "(30)")] = None,
    allow_targets: Annotated[list[str] | None, load_flag("allow_targets")] = None,
    connections: Annotated[int | None, load_flag("connections")] = None,
    expect_bytes: Annotated[int | None, load_flag("expect_bytes")] = None,
    redirects: Annotated[int | None, load_flag("redirects")] = None,
    stream: Annotated[str | None, load_flag("stream")] = None,
    min_chunks: Annotated[int | None, load_flag("min_chunks")] = None,
    end_marker: Annotated[str | None, load_flag("end_marker")] = None,
    http2: Annotated[bool, load_flag("http2")] = False,
    insecure: Annotated[bool, load_flag("insecure")] = False,
    ca_file: Annotated[str | None, load_flag("ca_file")] = None,
    duration: Annotated[float | None, load_flag("duration")] = None,
    requests: Annotated[int | None, load_flag("requests")] = None,
    stop_after_failures: Annotated[int | None, load_flag("stop_after_failures")] = None,
    objectives: Annotated[list[str] | None, load_flag("objectives")] = None,
    find_capacity: Annotated[
        bool,
        panel_option(
            "search the highest --rate or --users that meets the objectives",
            ENDING,
            "--find-capacity",
        ),
    ] = False,
    workers: Annotated[int, panel_option("processes (0: one per client core)", SENDING)] = 0,
    out: Annotated[
        str,
        panel_option("new folder for load.json and tables: requests, messages, chunks", OUTPUT),
    ] = "",
    as_json: Annotated[bool, panel_option("print one JSON object", OUTPUT, "--json")] = False,
    wait: Annotated[
        float, panel_option("seconds to wait until another measurement ends", SENDING)
    ] = 0.0,
) -> None:
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
    given = {
        name: value for name, value in locals().items() if name in FLAGS and value not in (None, [])
    }
    # Late: pydantic is slow to import.
    from perflab.cli.actions.load_search import search_capacity, search_problems
    from perflab.load import once
    from perflab.load.options import LoadOptions
    from perflab.load.records.record import folder_problems
    from perflab.load.summary_table import table

    options = LoadOptions.of({"url": url, **given})
    workload = options.workload()
    problems = folder_problems("--out", Path(out)) if out else []
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
