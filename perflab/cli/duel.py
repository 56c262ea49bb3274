"""``perflab duel``: compares variants of one service under the same load."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from perflab.cli.outputs import frame_table, make_console, named_here, print_table
from perflab.errors import (
    ImageError,
    ParameterError,
    PerflabError,
    RunInterrupted,
    ServiceFailed,
    WrongAnswer,
)

if TYPE_CHECKING:
    from perflab.analysis.evaluation import Finding
    from perflab.analysis.thresholds import Crossed
    from perflab.recordings import Run
    from perflab.reports.duels import Pair

EXPERIMENT = "custom_service"
WORSE, NOT_COMPARED, UNDECIDED = 3, 4, 5
# What `git bisect run` understands: any other status below 126 is a bad commit, one above ends it.
NOT_SLOWER, SLOWER, SKIPPED, LAB_FAILED = 0, 1, 125, 128
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
    start: Annotated[
        str,
        _option(
            "starts a git variant, with {port} (without it: its Dockerfile)", START, "--command"
        ),
    ] = "",
    prepare: Annotated[str, _option("shell command, run once per git variant", START)] = "",
    health: Annotated[str, _option("path that answers 200 when a variant is ready", START)] = "",
    start_timeout: Annotated[float | None, _option("seconds to become ready (60)", START)] = None,
    allow_target: Annotated[
        list[str] | None, _option("another host that may get load; repeatable", START)
    ] = None,
    users: Annotated[int | None, _option("closed loop of users (4)", LOAD)] = None,
    think_time: Annotated[float | None, _option("seconds a user waits", LOAD)] = None,
    rate: Annotated[float | None, _option("open loop: requests a second", LOAD)] = None,
    arrivals: Annotated[str, _option("constant or poisson", LOAD)] = "",
    path: Annotated[str, _option("path and query of the request", LOAD)] = "",
    method: Annotated[str, _option("GET, POST...", LOAD, "--method", "-X")] = "",
    header: Annotated[
        list[str] | None, _option("'Name: value'; repeatable", LOAD, "--header", "-H")
    ] = None,
    body: Annotated[str, _option("body, or @FILE of text", LOAD)] = "",
    connection: Annotated[str, _option("keep-alive or per-request", LOAD)] = "",
    timeout: Annotated[float | None, _option("seconds a request may take (10)", LOAD)] = None,
    expect_status: Annotated[int | None, _option("other statuses are failures", LOAD)] = None,
    expect_body: Annotated[str, _option("must occur in every body", LOAD)] = "",
    duration: Annotated[
        float | None, _option("seconds of each trial (3)", LOAD, "--duration", "-d")
    ] = None,
    warmup: Annotated[
        float | None, _option("seconds before them (found by the lab, 1 to 20)", LOAD)
    ] = None,
    blocks: Annotated[
        str, _option("one trial of each variant per block (8), or until_decided", VERDICT)
    ] = "",
    design: Annotated[
        str,
        _option(
            "how variants share a block's time: auto (slices if responses are short), trials or "
            "slices",
            VERDICT,
        ),
    ] = "",
    slice_ms: Annotated[
        float | None, _option("length of a slice (as short as responses allow)", VERDICT)
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
        bool, _option("status 5 if a threshold is undecided", VERDICT, "--strict")
    ] = False,
    bisect: Annotated[
        bool, _option("statuses for 'git bisect run', see below", VERDICT, "--bisect")
    ] = False,
    resume: Annotated[str, _option("finish this run", VERDICT)] = "",
    wait: Annotated[float, _option("seconds to wait for another measurement", VERDICT)] = 0.0,
) -> None:
    """Compare variants of your own service: which is slower, by how much, and how sure is that?

    KIND:WHAT is git:REPOSITORY@REVISION, command:WORDS, url:http://HOST:PORT, image:NAME:TAG or
    dockerfile:FOLDER. Variants start afresh for every block, in random order. They listen on
    127.0.0.1, on the port that is {port} in their command and PORT in their environment.

    Example: perflab duel --variant old=git:.@v1.2 --variant new=git:.@HEAD
    --command 'python app.py --port {port}' --path /items --users 8

    Example: perflab duel --fail-on 'p99>1.05' --fail-on 'cpu>1.1' --strict duel.toml

    Example: perflab duel --design slices duel.toml

    Example: perflab duel --variant a=url:http://127.0.0.1:8001
    --variant b=url:http://127.0.0.1:8002 --rate 200

    Exit status: 0 no effect is certainly beyond a threshold of --fail-on; 1 an error, see stderr;
    2 an option cannot be read; 3 a whole 95% interval is beyond its threshold; 4 a threshold could
    not be judged, or nothing was compared, because too few trials are valid; 5 with --strict, a
    threshold lies within an interval; 130 interrupted. If several apply: the first of 3, 4, 5.

    With --bisect: 0 the second variant is not slower (by its mean, or by --fail-on), 1 it is, 125
    that is not decided, or a variant could not be built or started, 128 the lab itself failed.
    """
    options: dict[str, Any] = {
        "command": start, "prepare": prepare, "health": health, "start_timeout_s": start_timeout,
        "allow_targets": allow_target, "users": users, "think_time_s": think_time, "rate": rate,
        "arrivals": arrivals, "path": path, "method": method, "headers": header,
        "body": _text(body), "connection": connection, "timeout_s": timeout,
        "expect_status": expect_status, "expect_body": expect_body, "duration_s": duration,
        "warmup_s": warmup, "blocks": blocks, "design": design, "slice_ms": slice_ms,
        "seed": seed, "variants": variant,
    }  # fmt: skip
    options = {name: value for name, value in options.items() if value not in (None, "", [])}
    # Late: pydantic is slow to import.
    from perflab.cli.duel_file import given

    values, bounds, is_strict = given(experiment=EXPERIMENT, file=file, options=options, run=resume)
    bounds, strict = [*bounds, *(fail_on or [])], is_strict or strict
    if bisect and len(values.get("variants", ())) > 2:
        raise ParameterError("perflab duel", ["--bisect compares two variants, not more"])
    with _statuses_of_git(bisect):
        _carry_out(values | ({"wait_s": wait} if wait else {}), bounds, strict, bisect)


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


def bisected(findings: Sequence[Finding], crossed: Collection[Crossed]) -> int:
    """Return the status for `git bisect run`: of thresholds if there are any, else of the mean."""
    from perflab.analysis.decision import Kind
    from perflab.analysis.thresholds import Crossed

    if crossed:
        held = NOT_SLOWER if set(crossed) == {Crossed.NO} else SKIPPED
        return SLOWER if Crossed.YES in crossed else held
    mean = next(finding for finding in findings if finding.contrast.response == "mean_ms")
    if mean.effect is None or mean.decision is None or mean.decision.kind is Kind.UNDECIDED:
        return SKIPPED
    is_different = mean.decision.kind is Kind.DIFFERENT
    return SLOWER if is_different and mean.effect.low > 1 else NOT_SLOWER


def _text(body: str) -> str:
    """Return a body; for ``@FILE`` the content of the file."""
    if not body.startswith("@"):
        return body
    try:
        return Path(body[1:]).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError("perflab duel", [f"--body {body}: {error}"]) from None


def _carry_out(values: dict[str, Any], bounds: list[str], strict: bool, bisect: bool) -> None:
    """Run, print the answer, save the figures; end with the status of the gate."""
    from perflab import api
    from perflab.analysis.evaluation import evaluate
    from perflab.analysis.thresholds import Crossed, judged, thresholds_of
    from perflab.reports.duels import pairs_of

    thresholds = thresholds_of(bounds, "perflab duel --fail-on")
    run = api.run(EXPERIMENT, values)
    findings = evaluate(run)
    gate = judged(thresholds, findings)
    _print(run, pairs_of(findings, thresholds, gate))
    console = make_console()
    folder = named_here(api.save(run)[0].parent)
    console.print(Text(f"\nfigures and section: {folder}/"), soft_wrap=True)
    if not values.get("resume"):
        again = shlex.join(["perflab", *sys.argv[1:]])
        console.print(Text(f"repeat: {again}"), soft_wrap=True)
    crossed = {bound.crossed for bound in gate}
    # A threshold on a metric that the run does not have was held against nothing.
    unjudged = len(thresholds) > len({bound.threshold.text for bound in gate})
    sys.stdout.flush()
    if bisect:
        raise typer.Exit(bisected(findings, [Crossed.UNKNOWN] if unjudged else crossed))
    if Crossed.YES in crossed:
        raise typer.Exit(WORSE)
    if Crossed.UNKNOWN in crossed or unjudged or not any(finding.effect for finding in findings):
        raise typer.Exit(NOT_COMPARED)
    if strict and Crossed.UNDECIDED in crossed:
        raise typer.Exit(UNDECIDED)


def _print(run: Run, pairs: list[Pair]) -> None:
    """Print whether answers differ, the result, a doubt, the table behind it, and its limits."""
    from perflab.analysis.noise import doubt
    from perflab.analysis.still_warming import still_warming
    from perflab.reports.duels import answer, notes, other_answers, result_table

    console = make_console()
    for sentence in [*still_warming(run), *other_answers(run)]:
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)
    for pair in pairs:
        console.print(Text(answer(pair, len(pairs) == 1), "bold"), soft_wrap=True)
    if why := doubt(run):
        console.print(f"DOUBTFUL: {why}", markup=False, highlight=False)
    if any(finding.effect for pair in pairs for finding in pair.findings.values()):
        console.print()
        print_table(frame_table(result_table(run, pairs)))
    console.print()
    for line in notes(run, pairs):
        console.print(line, markup=False, highlight=False)
