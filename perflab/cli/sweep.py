"""``perflab sweep``: many runs from one file; ``perflab worker``: a host that measures some."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perflab.errors import ParameterError

SOME_FAILED, TIME_WAS_UP = 3, 4


def command(
    file: Annotated[Path, typer.Argument(help="sweep file, such as notebooks/sweeps/quick.yaml")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="print every cell and its time, and measure nothing")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="continue the newest sweep of this file")
    ] = False,
    wait: Annotated[
        float, typer.Option(min=0, help="seconds to wait until another measurement ends")
    ] = 0.0,
    minutes: Annotated[
        float | None, typer.Option(min=0.1, help="start no cell after this time")
    ] = None,
    scheduler: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="execute cells on the workers of this Dask scheduler"),
    ] = "",
    results: Annotated[
        str,
        typer.Option(
            metavar="FOLDER",
            help="with --scheduler: a folder that all hosts see, for the results of cells",
        ),
    ] = "",
) -> None:
    """Execute notebooks over grids and lists of parameters.

    Every cell is checked before anything starts. A cell of which no trial counts has failed.
    --resume finishes interrupted runs, executes the cells that have not begun, and tries failed
    cells again.

    Exit status: 0 all cells are done; 1 nothing could be started; 2 an option or the file cannot be
    read; 3 some cells failed; 4 the time was up before; 130 interrupted.

    Example: perflab sweep notebooks/sweeps/quick.yaml --dry-run
    """
    if bool(scheduler) != bool(results):
        problem = "--scheduler and --results need each other: results of cells go to that folder"
        raise ParameterError("perflab sweep", [problem])
    if minutes is not None and scheduler:
        problem = "--minutes works on one host only: --scheduler hands out all cells at once"
        raise ParameterError("perflab sweep", [problem])
    from perflab.cli.actions import sweep
    from perflab.sweeps.execution import SweepOptions

    if dry_run:
        sweep.print_plan(file)
        return
    options = SweepOptions(resume=resume, wait_s=wait, minutes=minutes)
    states = sweep.carry_out(file, options, scheduler, results)
    if states.get("failed"):
        raise typer.Exit(SOME_FAILED)
    if minutes is not None and set(states) != {"done"}:
        raise typer.Exit(TIME_WAS_UP)


def worker(
    scheduler: Annotated[
        str, typer.Argument(help="address of the Dask scheduler, such as tcp://head:8786")
    ],
    listen: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="address of this host on which scheduler and workers reach it; by default the one "
            "by which it reaches the scheduler",
        ),
    ] = "",
) -> None:
    """Be this host's worker for 'perflab sweep --scheduler': one measurement at a time.

    Anybody who reaches the scheduler can execute anything here: use a private network or Dask's
    TLS. SIGTERM ends the current cell in order.

    Example: perflab worker tcp://head:8786
    """
    from perflab.sweeps.hosts.worker import serve

    serve(scheduler, listen)
