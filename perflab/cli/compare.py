"""``perflab compare``: what changed between runs of one experiment."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from perflab.cli.outputs import print_shown

if TYPE_CHECKING:
    from perflab.recordings import Run

WORSE, NOT_COMPARABLE, TOO_FEW_RUNS = 3, 4, 5


def command(
    runs_a: Annotated[
        str,
        typer.Argument(
            help="the earlier runs, joined by commas: ids or their ends, paths, latest:NAME",
            metavar="A1,A2,A3",
        ),
    ],
    runs_b: Annotated[
        str,
        typer.Argument(help="the later runs", metavar="B1,B2,B3"),
    ],
    fail_on: Annotated[
        float,
        typer.Option(
            help="exit status 3 if a response is certainly worse by this factor, like 1.1; needs "
            "three runs on each side"
        ),
    ] = 0.0,
) -> None:
    """Compare runs: ratio B / A per treatment and response, with 95% intervals.

    Two runs of the same code differ by more than their trials show. So better and worse need three
    runs on each side (perflab compare A1,A2,A3 B1,B2,B3), and the run is then the unit. With fewer
    runs a response only differs. The runs must alternate in time (A B B A A B): else a drift of the
    machine looks like a change, and nothing is better or worse.

    Exit status with --fail-on: 3 if a response is worse (the whole interval of its ratio is beyond
    the factor), 5 with fewer than three runs on a side, 4 if a response could not be compared or A
    and B do not alternate in time.
    Exit status 4 also if the runs are not comparable (other parameters, machine or backend), or if
    nothing could be compared.

    Example: perflab compare latest latest:synchronous_commit
    """
    from perflab import api
    from perflab.analysis.between_runs import compare_runs
    from perflab.errors import ParameterError
    from perflab.reports.verdicts import shown_comparison

    if fail_on and not fail_on >= 1:
        raise ParameterError("--fail-on", [f"{fail_on:g} is below 1; for 10% worse give 1.1"])
    a, b = (
        [api.open_run(reference.strip()) for reference in side.split(",")]
        for side in (runs_a, runs_b)
    )
    comparison = compare_runs(a, b)
    worse = comparison.worse(fail_on) if fail_on else comparison.table.head(0)
    print_shown(shown_comparison(a, b, comparison))
    if comparison.obstacles:
        raise typer.Exit(NOT_COMPARABLE)
    if fail_on and not comparison.enough:
        print(_way_out(a, b, fail_on), file=sys.stderr)
        raise typer.Exit(TOO_FEW_RUNS)
    if fail_on and comparison.apart:
        print(f"--fail-on {fail_on:g} judged nothing: {comparison.apart}", file=sys.stderr)
        raise typer.Exit(NOT_COMPARABLE)
    if len(worse):
        print(f"{len(worse)} responses are worse by {fail_on:g} or more")
        raise typer.Exit(WORSE)
    if len(comparison.not_compared) == len(comparison.table):
        print("nothing could be compared", file=sys.stderr)
        raise typer.Exit(NOT_COMPARABLE)
    if fail_on and len(comparison.not_compared):
        many = len(comparison.not_compared)
        print(f"{many} rows could not be compared: --fail-on {fail_on:g} fails", file=sys.stderr)
        raise typer.Exit(NOT_COMPARABLE)


def _way_out(a: list[Run], b: list[Run], fail_on: float) -> str:
    from perflab.analysis.between_runs import ENOUGH_RUNS
    from perflab.recordings.schema import is_imported

    counts = f"there are {len(a)} and {len(b)}"
    if is_imported(a[0].record):
        return (
            f"--fail-on {fail_on:g} judged nothing: these are imported results, and nobody knows "
            "whether services started afresh between the loads."
        )
    return (
        f"--fail-on {fail_on:g} judged nothing: it needs {ENOUGH_RUNS} runs on each side; {counts}."
        " Two runs of the same code differ by more than their trials show.\n"
        f"Repeat `perflab run {a[0].record.experiment}` for A and B in turn (A B B A A B) until "
        f"each side has {ENOUGH_RUNS} runs; then "
        f"`perflab compare A1,A2,A3 B1,B2,B3 --fail-on {fail_on:g}`."
    )
