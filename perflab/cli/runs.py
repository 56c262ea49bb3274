"""``perflab runs`` lists recorded runs; ``perflab import`` makes one of other tools' results."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    experiment: Annotated[str, typer.Option(help="only runs of this experiment")] = "",
    limit: Annotated[int, typer.Option(min=0, help="only this many, the newest; 0: all")] = 0,
    reference: Annotated[
        bool, typer.Option("--reference", help="only runs that ship with the lab")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="print JSON, with parameters and paths")
    ] = False,
) -> None:
    """List recorded runs, oldest first: your own, or those that ship with the lab.

    Example: perflab runs --json

    Runs elsewhere: PERFLAB_RUNS=/mnt/results/runs perflab runs
    """
    from perflab.cli.actions import runs

    runs.print_runs(experiment, limit, reference=reference, as_json=as_json)


def import_results(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="[TREATMENT=]FILE...", help="results of the tool, one file or folder per load"
        ),
    ],
    tool: Annotated[
        str, typer.Option(help="read the files as this tool's: k6, locust, oha, wrk, ab, perflab")
    ] = "",
) -> None:
    """Make a recording from the results of another load tool, or of 'perflab load --out'.

    Each load becomes one trial. Trials are "not judged", because the files lack
    planned instants and the tool's own lag, stalls and CPU, or the order of the loads.
    docs/how-to/import.md lists what is read.

    Example: perflab import k6.json

    Example: perflab import a=A1.txt a=A2.txt b=B1.txt b=B2.txt

    Example: perflab import old=load1 old=load2 new=load3 new=load4
    """
    from perflab.cli.actions import imports

    imports.import_files(files, tool)
