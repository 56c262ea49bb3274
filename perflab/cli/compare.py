"""``perflab compare``: what changed between runs of one experiment."""

from __future__ import annotations

from typing import Annotated

import typer


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
    from perflab.cli.actions import compare

    if status := compare.compare_sides(runs_a.split(","), runs_b.split(","), fail_on):
        raise typer.Exit(status)
