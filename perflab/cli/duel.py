"""``perflab duel``: compares variants of one service under the same load."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from perflab.cli.duel_status import LAB_FAILED, SKIPPED, bisected, status_of
from perflab.cli.outputs import frame_table, make_console, named_here, print_table
from perflab.errors import (
    ImageError,
    ParameterError,
    PerflabError,
    RunInterrupted,
    ServiceFailed,
    WrongAnswer,
)
from perflab.project import DUELS

if TYPE_CHECKING:
    from perflab.recordings import Run
    from perflab.reports.duel_pairs import Pair

OF_WHY = "   (with --why: what makes the difference)"
START, LOAD, VERDICT = "Variants and their start", "Load", "Verdict"


def _option(help: str, panel: str, *names: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel)


def command(
    file: Annotated[
        str, typer.Argument(help="duel.toml; options overrule it", metavar="[FILE]")
    ] = "",
    variant: Annotated[
        list[str] | None,
        _option("NAME=KIND:WHAT; repeatable, the first is the baseline", START),
    ] = None,
    against: Annotated[
        str, _option("compare HEAD with its merge base with this revision", START)
    ] = "",
    working_tree: Annotated[
        bool,
        _option("with --against: the files as they are, uncommitted", START, "--working-tree"),
    ] = False,
    start: Annotated[
        str,
        _option("starts a git or tree variant, with {port} (its Dockerfile)", START, "--command"),
    ] = "",
    prepare: Annotated[str, _option("shell command, run once per git or tree variant", START)] = "",
    env: Annotated[
        list[str] | None,
        _option("NAME=VALUE, or NAME of your environment, for variants; repeatable", START),
    ] = None,
    env_file: Annotated[str, _option("file of lines NAME=VALUE, recorded nowhere", START)] = "",
    needs: Annotated[
        list[str] | None,
        _option("NAME=postgres or NAME=redis: a store of its own; repeatable", START),
    ] = None,
    setup: Annotated[str, _option("command that fills the stores, once per run", START)] = "",
    also: Annotated[
        list[str] | None,
        _option("HOST:PORT of a store on loopback that variants may use; repeatable", START),
    ] = None,
    health: Annotated[str, _option("path that answers 200 when a variant is ready", START)] = "",
    start_timeout: Annotated[float | None, _option("seconds to become ready (60)", START)] = None,
    allow_target: Annotated[
        list[str] | None, _option("another host that may get load; repeatable", START)
    ] = None,
    users: Annotated[int | None, _option("closed loop of users (4)", LOAD)] = None,
    think_time: Annotated[float | None, _option("seconds a user waits", LOAD)] = None,
    rate: Annotated[float | None, _option("open loop: requests a second", LOAD)] = None,
    arrivals: Annotated[str, _option("constant or poisson", LOAD)] = "",
    script: Annotated[
        str, _option("users of a Python class: FILE.py:Class (perflab.load.users)", LOAD)
    ] = "",
    path: Annotated[str, _option("path and query of the request", LOAD)] = "",
    method: Annotated[str, _option("GET, POST...", LOAD, "--method", "-X")] = "",
    header: Annotated[
        list[str] | None,
        _option("'Name: value', or 'Name: env:VARIABLE'; repeatable", LOAD, "--header", "-H"),
    ] = None,
    header_file: Annotated[
        str, _option("file with lines 'Name: value', which are shown nowhere", LOAD)
    ] = "",
    secret: Annotated[
        list[str] | None,
        _option("name of a header, variable or parameter whose value is secret; repeatable", LOAD),
    ] = None,
    body: Annotated[str, _option("body, or @FILE (text or any bytes)", LOAD)] = "",
    connection: Annotated[str, _option("keep-alive or per-request", LOAD)] = "",
    timeout: Annotated[float | None, _option("seconds a request may take (10)", LOAD)] = None,
    expect_status: Annotated[
        str, _option("other statuses are failures (200); several: 201,409", LOAD)
    ] = "",
    expect_body: Annotated[str, _option("must occur in every body", LOAD)] = "",
    duration: Annotated[
        float | None, _option("seconds of each trial (2)", LOAD, "--duration", "-d")
    ] = None,
    warmup: Annotated[
        float | None, _option("seconds of load before a trial (found by the lab, 1 to 20)", LOAD)
    ] = None,
    blocks: Annotated[
        str, _option("one trial of each variant per block (10 or more), or until_decided", VERDICT)
    ] = "",
    design: Annotated[
        str,
        _option(
            "how variants share a block's time: auto (slices if answers come soon), trials or "
            "slices",
            VERDICT,
        ),
    ] = "",
    slice_ms: Annotated[
        float | None, _option("length of a slice (as short as response times allow)", VERDICT)
    ] = None,
    seed: Annotated[int | None, _option("decides the order of trials", VERDICT)] = None,
    fail_on: Annotated[
        list[str] | None,
        _option(
            "status 3 if certainly beyond: 'p99>1.05'; throughput<, mean>, p50>, p99>, cpu>, "
            "memory>, failures>; repeatable",
            VERDICT,
        ),
    ] = None,
    strict: Annotated[
        bool, _option("status 5 if a threshold is not decided", VERDICT, "--strict")
    ] = False,
    bisect: Annotated[
        bool, _option("statuses for 'git bisect run', see above", VERDICT, "--bisect")
    ] = False,
    why: Annotated[
        bool, _option("then look for what makes the difference (some 40 s)", VERDICT, "--why")
    ] = False,
    summary: Annotated[
        str, _option("write the answer as Markdown, for a pull request", VERDICT)
    ] = "",
    as_json: Annotated[
        bool, _option("print the answer as JSON instead", VERDICT, "--json")
    ] = False,
    resume: Annotated[str, _option("finish this run", VERDICT)] = "",
    wait: Annotated[
        float, _option("seconds to wait until another measurement ends", VERDICT)
    ] = 0.0,
) -> None:
    """Compare variants of your own service: which is slower, by how much, and how sure is that?

    KIND:WHAT is git:REPOSITORY@REVISION, tree:FOLDER, command:WORDS, url:http://HOST:PORT,
    image:NAME:TAG or dockerfile:FOLDER. Variants start afresh for every block, in random order.
    They listen on 127.0.0.1, on the port that is {port} in their command and PORT in their
    environment.

    Example: perflab duel --against main --command 'python app.py --port {port}' --path /items

    Example: perflab duel --variant old=git:.@v1.2 --variant new=git:.@HEAD
    --command 'python app.py --port {port}' --path /items --users 8

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
    options: dict[str, Any] = {
        "command": start, "prepare": prepare, "health": health, "start_timeout_s": start_timeout,
        "allow_targets": allow_target, "users": users, "think_time_s": think_time, "rate": rate,
        "arrivals": arrivals, "script": script, "path": path, "method": method, "headers": header,
        "body": body, "connection": connection, "timeout_s": timeout,
        "expect_status": expect_status, "expect_body": expect_body, "duration_s": duration,
        "warmup_s": warmup, "blocks": blocks, "design": design, "slice_ms": slice_ms,
        "seed": seed, "variants": variant, "env": env, "header_file": header_file,
        "secret": secret, "env_file": env_file, "also": also,
        "needs": needs, "setup": setup,
        "against": against, "working_tree": working_tree or None,
        "why": why or None,
    }  # fmt: skip
    options = {name: value for name, value in options.items() if value not in (None, "", [])}
    # Late: pydantic is slow to import.
    from perflab.cli.duel_file import given

    with _statuses_of_git(bisect):
        values, fail_on, is_strict = given(DUELS, file, options, resume, fail_on or [])
        strict = is_strict or strict
        if bisect and len(values.get("variants", ())) > 2:
            raise ParameterError("perflab duel", ["--bisect compares two variants, not more"])
        wanted = Wanted(strict, bisect, as_json, Path(summary) if summary else None)
        _carry_out(values | ({"wait_s": wait} if wait else {}), fail_on, wanted)


@dataclass(frozen=True)
class Wanted:
    """What becomes of the answer: statuses, JSON, and the file of a summary."""

    strict: bool
    bisect: bool
    as_json: bool
    summary: Path | None


@contextmanager
def _statuses_of_git(asked: bool) -> Iterator[None]:
    """Let `git bisect run` skip what cannot be built or started, and end at any other error."""
    try:
        yield
    except PerflabError as error:
        if not asked or isinstance(error, RunInterrupted):
            raise
        print(f"perflab: {error}", file=sys.stderr)
        is_a_variants = isinstance(error, ServiceFailed | ImageError | WrongAnswer)
        raise typer.Exit(SKIPPED if is_a_variants else LAB_FAILED) from None


def _carry_out(values: dict[str, Any], fail_on: list[str], wanted: Wanted) -> None:
    """Run, print the answer, save the figures; end with the status of the gate."""
    from perflab import api
    from perflab.analysis.evaluation import evaluate
    from perflab.analysis.gates.thresholds import judged, thresholds_of
    from perflab.cli.repeating import repeatable
    from perflab.paths import figures_dir
    from perflab.reports.duel_answer import differs
    from perflab.reports.duel_pairs import pairs_of
    from perflab.reports.duel_summary import as_data
    from perflab.reports.methods import command as command_of
    from perflab.reports.section import write_report

    thresholds = thresholds_of(fail_on, "perflab duel --fail-on")
    run = api.run(DUELS, values)
    findings = evaluate(run)
    pairs = pairs_of(findings, thresholds, judged(thresholds, findings))
    _summarise(run, pairs, wanted.summary)
    status = bisected(pairs) if wanted.bisect else status_of(pairs, wanted.strict)
    if wanted.as_json:
        print(json.dumps(as_data(run, pairs), indent=1))
        write_report(run, findings, figures_dir() / run.run_id)
        raise typer.Exit(status)
    _print(run, pairs)
    console = make_console()
    folder = named_here(write_report(run, findings, figures_dir() / run.run_id)[0].parent)
    is_open = not run.record.parameters.get("why") and any(map(differs, pairs))
    console.print(Text(f"\nfigures and section: {folder}/{OF_WHY * is_open}"), soft_wrap=True)
    # A resumed run has its own parameters, and not those of this command line.
    typed = shlex.join(["perflab", *repeatable(sys.argv[1:], values)])
    again = command_of(run.record) if values.get("resume") else typed
    console.print(Text(f"repeat: {again}"), soft_wrap=True)
    sys.stdout.flush()
    raise typer.Exit(status)


def _summarise(run: Run, pairs: list[Pair], file: Path | None) -> None:
    """Write the summary to a file, and add it to that of the job where GitHub runs one."""
    from perflab.host.files import replace_file
    from perflab.reports.duel_summary import as_markdown

    of_job = os.environ.get("GITHUB_STEP_SUMMARY", "")
    text = as_markdown(run, pairs) if file or of_job else ""
    if file:
        replace_file(file, text.encode())
    if of_job:
        with Path(of_job).open("a", encoding="utf-8") as job:
            job.write(text)


def _print(run: Run, pairs: list[Pair]) -> None:
    """Print whether answers differ, the result, a doubt, the table behind it, and its limits."""
    from perflab.analysis.doubts.still_warming import still_warming
    from perflab.analysis.noise import doubt
    from perflab.reports.duel_notes import notes
    from perflab.reports.duel_table import result_table
    from perflab.reports.duels import answer_lines, beside_the_answer, other_answers

    console = make_console()
    for sentence in [*still_warming(run), *other_answers(run)]:
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)
    for pair in pairs:
        for line in answer_lines(run, pair, len(pairs) == 1):
            console.print(Text(line, "bold"), soft_wrap=True)
    for sentence in beside_the_answer(run, pairs):
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)
    if why := doubt(run):
        console.print(f"DOUBTFUL: {why}", markup=False, highlight=False)
    if any(finding.effect for pair in pairs for finding in pair.findings.values()):
        console.print()
        print_table(frame_table(result_table(run, pairs)))
    console.print()
    for line in notes(run, pairs):
        console.print(line, markup=False, highlight=False)
