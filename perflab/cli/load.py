"""``perflab load``: send load to an address and see what it takes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perflab.cli import load_capacity, load_live
from perflab.errors import LoadError

if TYPE_CHECKING:
    from perflab.load.options import Options
    from perflab.load.result import LoadResult
    from perflab.load.workload import Workload

ARRIVALS, REQUEST, ENDING = "Arrivals", "Request", "Ending"
SENDING, OUTPUT = "Sending", "Output"
RECORD = ("requests.parquet", "load.json")


def _option(text: str, panel: str, *names: str) -> typer.models.OptionInfo:
    return typer.Option(*names, help=text, rich_help_panel=panel)  # type: ignore[no-any-return]


def command(
    url: Annotated[
        str, typer.Argument(help="address, like http://127.0.0.1:8000/path; --har brings its own")
    ] = "",
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
    har: Annotated[
        str, _option("users who send what a browser recorded, in its order (HAR file)", ARRIVALS)
    ] = "",
    har_filter: Annotated[str, _option("of the HAR: addresses that match this", ARRIVALS)] = "",
    har_pauses: Annotated[
        bool, _option("keep the pauses between its requests", ARRIVALS, "--har-pauses")
    ] = False,
    har_keep_secrets: Annotated[
        bool,
        _option("send its Cookie, Authorization and the like", ARRIVALS, "--har-keep-secrets"),
    ] = False,
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
    body: Annotated[str, _option("body, or @FILE of text", REQUEST)] = "",
    body_file: Annotated[str, _option("send this file's bytes, of any length", REQUEST)] = "",
    data: Annotated[
        str, _option("JSON lines; $name in path, headers and body is filled in turn", REQUEST)
    ] = "",
    connection: Annotated[str, _option("keep-alive or per-request", REQUEST)] = "keep-alive",
    connections: Annotated[
        int, _option("cap on open connections (0: users, or 2000)", REQUEST)
    ] = 0,
    requests_per_connection: Annotated[
        int, _option("close a connection after this many (0: never)", REQUEST)
    ] = 0,
    idle: Annotated[
        float, _option("close a connection idle for seconds (0: never)", REQUEST)
    ] = 0.0,
    churn: Annotated[
        float, _option("close this many connections a second, the oldest first", REQUEST)
    ] = 0.0,
    churn_share: Annotated[
        float, _option("close the connection after this share of requests", REQUEST)
    ] = 0.0,
    timeout: Annotated[float, _option("seconds a request may take", REQUEST)] = 30.0,
    expect_status: Annotated[int, _option("other statuses are errors", REQUEST)] = 200,
    expect_body: Annotated[str, _option("must occur in every body", REQUEST)] = "",
    expect_bytes: Annotated[int, _option("length of every body (-1: any)", REQUEST)] = -1,
    expect_checksum: Annotated[
        str, _option("of every body: crc32:HEX, sha256:HEX or @FILE", REQUEST)
    ] = "",
    redirects: Annotated[int, _option("redirects to follow", REQUEST)] = 0,
    stream: Annotated[
        str, _option("the answer is a stream: sse (server-sent events) or ndjson", REQUEST)
    ] = "",
    min_chunks: Annotated[int, _option("least chunks of a stream (default 1)", REQUEST)] = 0,
    end_marker: Annotated[
        str, _option("last event of a stream: [DONE]; of ndjson a member: '\"done\":true'", REQUEST)
    ] = "",
    cookies: Annotated[
        bool, _option("every user keeps the cookies that servers set", REQUEST, "--cookies")
    ] = False,
    cookie: Annotated[
        list[str] | None, _option("name=value with every request; repeatable", REQUEST)
    ] = None,
    client: Annotated[str, _option("lean, aiohttp, httpx or http2", REQUEST)] = "lean",
    http2: Annotated[
        bool, _option("HTTP/2, by httpx (perflab[http2])", REQUEST, "--http2")
    ] = False,
    insecure: Annotated[bool, _option("do not verify TLS", REQUEST, "--insecure")] = False,
    ca_file: Annotated[str, _option("trust this CA bundle", REQUEST, "--ca-file", "--ca")] = "",
    cert: Annotated[str, _option("client certificate to show (PEM)", REQUEST)] = "",
    key: Annotated[str, _option("its private key (PEM)", REQUEST)] = "",
    key_password_env: Annotated[
        str, _option("environment variable with the password of the key", REQUEST)
    ] = "",
    allow_target: Annotated[
        list[str] | None, _option("a host other than loopback you may load; repeatable", REQUEST)
    ] = None,
    requests: Annotated[int, _option("end after this many", ENDING, "--requests", "-n")] = 0,
    duration: Annotated[
        float, _option("end after seconds (default 10)", ENDING, "--duration", "-d")
    ] = 0.0,
    stop_after_failures: Annotated[
        int,
        _option(
            "end at this many failures, of all workers; what is under way ends (0: never)", ENDING
        ),
    ] = 0,
    stop_failure_share: Annotated[float, _option("end above this share", ENDING)] = 0.0,
    objective: Annotated[
        list[str] | None,
        _option(
            "end when missed: 'p99<1000ms/5s' (over 5 s); of streams, judged at the end: "
            "'ttft_p95<500ms', 'gap_p99<100ms'; repeatable",
            ENDING,
        ),
    ] = None,
    find_capacity: Annotated[
        bool,
        _option(
            "search the highest --rate or --users that meets the objectives",
            ENDING,
            "--find-capacity",
        ),
    ] = False,
    workers: Annotated[int, _option("processes (0: one per client core)", SENDING)] = 0,
    out: Annotated[str, _option("new folder for requests.parquet and load.json", OUTPUT)] = "",
    as_json: Annotated[bool, _option("print one JSON object", OUTPUT, "--json")] = False,
    csv: Annotated[
        str, _option("new file for the summary as CSV, a row per name; - prints it", OUTPUT)
    ] = "",
    report: Annotated[
        str, _option("new file for one HTML page of the load, whole in itself", OUTPUT)
    ] = "",
    wait: Annotated[float, _option("seconds to wait for another measurement", SENDING)] = 0.0,
) -> None:
    """Send load to an address; every number is shown to be valid, or marked as not.

    Ctrl-C ends the load in order and shows what was measured. Times count from the instant a
    request was planned for, so a wait for a frozen server is never left out.

    A streamed answer: perflab load --users 20 --stream sse --end-marker '[DONE]' URL shows the time
    to the first chunk, the gaps between chunks and chunks per second.

    A load until it fails: perflab load --users 500 --ramp 480 --pacing 20 --duration 480
    --stop-after-failures 5 URL says after what time, with how many users, and what ended before
    the fifth failure and after it. Times and throughput hold only what ended before.

    Exit status: 0 the numbers are valid and every objective was held; 1 an error, told on stderr;
    2 words that cannot be read; 3 INVALID numbers, or too few for an objective; 4 every request
    failed; 99 an objective was missed or --stop-after-failures was reached; 130 interrupted. Of
    several the first of 130, 4, 3, 99.

    Example: perflab load http://127.0.0.1:8000/ --users 20 --duration 10

    Example: perflab load http://127.0.0.1:8000/ --rate 500 --objective 'p99<100ms'
    """
    from perflab.load.command import workload
    from perflab.load.options import Options

    options = Options(
        url=url, users=users, rate=rate, stages=stages, user_stages=user_stages,
        burst=burst, script=script,
        script_parameters=script_parameter or (), arrivals=arrivals, seed=seed,
        requests=requests, duration=duration, warmup=warmup, think_time=think_time,
        pacing=pacing, ramp=ramp, connection=connection, connections=connections,
        requests_per_connection=requests_per_connection, idle=idle, churn=churn,
        churn_share=churn_share, timeout=timeout, method=method, headers=header or (), body=body,
        body_file=body_file, data=data, expect_status=expect_status, expect_body=expect_body,
        expect_bytes=expect_bytes, expect_checksum=expect_checksum, redirects=redirects,
        stream=stream, min_chunks=min_chunks, end_marker=end_marker, client=client,
        insecure=insecure, ca_file=ca_file, stop_after_failures=stop_after_failures,
        stop_failure_share=stop_failure_share, objectives=objective or (),
        allow_targets=allow_target or (), out=out, csv=csv, report=report, har=har,
        har_filter=har_filter, har_pauses=har_pauses, har_keep_secrets=har_keep_secrets,
        cookies=cookies, fixed_cookies=cookie or (), http2=http2, cert=cert, key=key,
        key_password_env=key_password_env,
    )  # fmt: skip
    for name in ("users", "rate", "requests", "duration", "burst"):
        value = getattr(options, name)
        if value < 0:
            options.problems.append(f"--{name} {value:g} is negative")
    if stop_after_failures < 0:
        options.problems.append(f"--stop-after-failures {stop_after_failures} is negative")
    if workers < 0:
        options.problems.append(f"--workers {workers} is negative")
    if as_json and csv == "-":
        options.problems.append("--json and --csv - would both be printed; name a file for --csv")
    if find_capacity:
        load_capacity.check(options)
    made = workload(options)
    if find_capacity:
        load_capacity.search(made, options, workers, wait, as_json)
        return
    _send(made, options, workers, wait, as_json)


def _send(made: Workload, options: Options, workers: int, wait: float, as_json: bool) -> None:
    from perflab.load import once
    from perflab.load.status import Status, status_of

    show = load_live.Live()
    folder = Path(options.out) if options.out else None
    with load_live.interruptible() as look:
        carried = once.carry_out(
            made,
            options.url,
            allowed=options.allow_targets,
            workers=workers,
            wait_s=wait,
            out=folder,
            on_progress=show,
            look=look,
            page=_page(options),
        )
    show.end()
    for text in carried.failures:
        print(f"the script failed:\n{text}", file=sys.stderr)
    _print(carried.shown, options, as_json)
    if carried.unwritten:
        print(f"perflab: {carried.unwritten}", file=sys.stderr)
        raise typer.Exit(Status.ERROR)
    raise typer.Exit(status_of(carried.shown))


def _page(options: Options) -> Callable[[LoadResult, dict[str, Any]], None]:
    """Return what writes the page that ``--report`` asks for."""

    def write(result: LoadResult, shown: dict[str, Any]) -> None:
        if options.report:
            from perflab.durable import replace_file
            from perflab.reports.load_page import page_of_load

            page = page_of_load(result, shown, options.url, ["perflab", *sys.argv[1:]])
            replace_file(Path(options.report), page.encode())

    return write


def _print(shown: dict[str, Any], options: Options, as_json: bool) -> None:
    from perflab.load.summary_csv import csv_text
    from perflab.load.summary_table import table

    if options.csv == "-":
        print(csv_text(shown), end="")
    else:
        print(json.dumps(shown) if as_json else table(shown))
    written = [Path(options.out) / name for name in RECORD] if options.out else []
    if options.csv and options.csv != "-":
        file = Path(options.csv)
        try:
            file.write_text(csv_text(shown))
        except OSError as error:
            raise LoadError(
                f"the summary could not be written to {file}: {error.strerror}"
            ) from None
        written.append(file)
    if options.report and Path(options.report).exists():
        written.append(Path(options.report))
    if written and not as_json and options.csv != "-":
        print("\n" + "\n".join(map(str, written)))
