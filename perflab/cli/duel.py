"""``perflab duel``: compares variants of one service under the same load."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perflab.cli.duel_status import bisected, status_of
from perflab.cli.flags import load_flag, panel_option
from perflab.errors import ParameterError
from perflab.project import DUELS

START, LOAD, VERDICT = "Variants and their start", "Load", "Verdict"
# The parameters of options that are called otherwise.
PARAMETERS = {
    "variant": "variants", "start": "command", "start_timeout": "start_timeout_s",
    "think_time": "think_time_s", "timeout": "timeout_s", "duration": "duration_s",
    "warmup": "warmup_s",
}  # fmt: skip
# The options that are no parameters.
OF_THE_COMMAND = ("file", "fail_on", "strict", "bisect", "summary", "as_json", "resume", "wait")


def command(
    file: Annotated[
        str, typer.Argument(help="duel.toml; options overrule it", metavar="[FILE]")
    ] = "",
    variant: Annotated[
        list[str] | None,
        panel_option("NAME=KIND:WHAT; repeatable, the first is the baseline", START),
    ] = None,
    against: Annotated[
        str, panel_option("compare HEAD with its merge base with this revision", START)
    ] = "",
    working_tree: Annotated[
        bool,
        panel_option("with --against: the files as they are, uncommitted", START, "--working-tree"),
    ] = False,
    start: Annotated[
        str,
        panel_option(
            "starts a git or tree variant, with {port} (its Dockerfile)", START, "--command"
        ),
    ] = "",
    prepare: Annotated[
        str, panel_option("shell command, run once per git or tree variant", START)
    ] = "",
    env: Annotated[
        list[str] | None,
        panel_option("NAME=VALUE, or NAME of your environment, for variants; repeatable", START),
    ] = None,
    env_file: Annotated[
        str, panel_option("file of lines NAME=VALUE, recorded nowhere", START)
    ] = "",
    needs: Annotated[
        list[str] | None,
        panel_option("NAME=postgres or NAME=redis: a store of its own; repeatable", START),
    ] = None,
    setup: Annotated[str, panel_option("command that fills the stores, once per run", START)] = "",
    also: Annotated[
        list[str] | None,
        panel_option("HOST:PORT of a store on loopback that variants may use; repeatable", START),
    ] = None,
    health: Annotated[
        str, panel_option("path that answers 200 when a variant is ready", START)
    ] = "",
    start_timeout: Annotated[
        float | None, panel_option("seconds to become ready (60)", START)
    ] = None,
    allow_targets: Annotated[list[str] | None, load_flag("allow_targets", panel=START)] = None,
    users: Annotated[int | None, load_flag("users", "(4)", LOAD)] = None,
    think_time: Annotated[float | None, load_flag("think_time", panel=LOAD)] = None,
    rate: Annotated[float | None, load_flag("rate", panel=LOAD)] = None,
    arrivals: Annotated[str, load_flag("arrivals", panel=LOAD)] = "",
    script: Annotated[str, load_flag("script", panel=LOAD)] = "",
    path: Annotated[str, panel_option("path and query of the request", LOAD)] = "",
    method: Annotated[str, load_flag("method", panel=LOAD)] = "",
    headers: Annotated[list[str] | None, load_flag("headers", panel=LOAD)] = None,
    header_file: Annotated[str, load_flag("header_file", panel=LOAD)] = "",
    secret: Annotated[list[str] | None, load_flag("secret", panel=LOAD)] = None,
    body: Annotated[str, load_flag("body", panel=LOAD)] = "",
    connection: Annotated[str, load_flag("connection", panel=LOAD)] = "",
    timeout: Annotated[float | None, load_flag("timeout", "(10)", LOAD)] = None,
    expect_status: Annotated[str, load_flag("expect_status", panel=LOAD)] = "",
    expect_body: Annotated[str, load_flag("expect_body", panel=LOAD)] = "",
    duration: Annotated[
        float | None, panel_option("seconds of each trial (2)", LOAD, "--duration", "-d")
    ] = None,
    warmup: Annotated[
        float | None,
        panel_option("seconds of load before a trial (found by the lab, 1 to 20)", LOAD),
    ] = None,
    blocks: Annotated[
        str,
        panel_option("one trial of each variant per block (10 or more), or until_decided", VERDICT),
    ] = "",
    design: Annotated[
        str,
        panel_option(
            "how variants share a block's time: auto (slices if answers come soon), trials or "
            "slices",
            VERDICT,
        ),
    ] = "",
    slice_ms: Annotated[
        float | None, panel_option("length of a slice (as short as response times allow)", VERDICT)
    ] = None,
    seed: Annotated[int | None, panel_option("decides the order of trials", VERDICT)] = None,
    fail_on: Annotated[
        list[str] | None,
        panel_option(
            "status 3 if certainly beyond: 'p99>1.05'; throughput<, mean>, p50>, p99>, cpu>, "
            "memory>, failures>; repeatable",
            VERDICT,
        ),
    ] = None,
    strict: Annotated[
        bool, panel_option("status 5 if a threshold is not decided", VERDICT, "--strict")
    ] = False,
    bisect: Annotated[
        bool, panel_option("statuses for 'git bisect run', see above", VERDICT, "--bisect")
    ] = False,
    why: Annotated[
        bool, panel_option("then look for what makes the difference (some 40 s)", VERDICT, "--why")
    ] = False,
    summary: Annotated[
        str, panel_option("write the answer as Markdown, for a pull request", VERDICT)
    ] = "",
    as_json: Annotated[
        bool, panel_option("print the answer as JSON instead", VERDICT, "--json")
    ] = False,
    resume: Annotated[str, panel_option("finish this run, or add --why to it", VERDICT)] = "",
    wait: Annotated[
        float, panel_option("seconds to wait until another measurement ends", VERDICT)
    ] = 0.0,
) -> None:
    """Compare variants of your own service: which is slower, by how much, and how sure is that?

    KIND:WHAT is git:REPOSITORY@REVISION, tree:FOLDER, command:WORDS, url:http://HOST:PORT,
    image:NAME:TAG or dockerfile:FOLDER. Variants start afresh for every block, in random order.
    They listen on 127.0.0.1, on the port that is {port} in their command and PORT in their
    environment.

    Example: perflab duel --against main --command 'python3 app.py --port {port}' --path /items

    Example: perflab duel --variant old=git:.@v1.2 --variant new=git:.@HEAD
    --command 'python3 app.py --port {port}' --path /items --users 8

    Example: perflab duel --fail-on 'p99>1.05' --fail-on 'cpu>1.1' --strict duel.toml

    Example: perflab duel --design slices duel.toml

    Example: perflab duel --variant a=url:http://127.0.0.1:8001
    --variant b=url:http://127.0.0.1:8002 --rate 200

    Exit status: 0 every variant was compared, and no effect is certainly beyond its threshold; 1 an
    error: nothing, or not everything, was measured; 2 an option cannot be read; 3 an effect is
    certainly beyond its threshold; 4 a threshold could not be judged, or a variant could not be
    compared; 5 with --strict: a threshold lies within an interval, or is not certain; 130
    interrupted. If several apply: the first of 3, 4, 5.

    With --bisect: 0 the second variant is not slower (by its mean, or by --fail-on), 1 it is, 125
    that is not decided, or a variant could not be built or started, 128 the lab itself failed.
    """
    options = {
        PARAMETERS.get(name, name): value
        for name, value in locals().items()
        if name not in OF_THE_COMMAND and value is not False and value not in (None, "", [])
    }
    # Late: pydantic is slow to import.
    from perflab import api
    from perflab.analysis.gates.thresholds import thresholds_of
    from perflab.cli.actions import duel_result
    from perflab.cli.duel_file import given

    values, fail_on, is_strict = given(DUELS, file, options, resume, fail_on or [])
    if bisect and len(values.get("variants", ())) > 2:
        raise ParameterError("perflab duel", ["--bisect compares two variants, not more"])
    thresholds = thresholds_of(fail_on, "perflab duel --fail-on")
    summary_file = Path(summary) if summary else None
    duel_result.check_summary(summary_file)
    run = api.run(DUELS, values | ({"wait_s": wait} if wait else {}))
    result = duel_result.of(run, thresholds)
    if as_json:
        duel_result.print_json(result)
    else:
        duel_result.print_result(result, values)
    duel_result.summarise(result, summary_file)
    pairs = result.pairs
    raise typer.Exit(bisected(pairs) if bisect else status_of(pairs, is_strict or strict))
