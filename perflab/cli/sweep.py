"""``perflab sweep``: many runs from one file; ``perflab worker``: a host that measures some."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from perflab.cli.outputs import print_table

if TYPE_CHECKING:
    from perflab.sweeps.cells import Sweep

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
    from perflab.errors import ParameterError
    from perflab.sweeps.cells import open_sweep
    from perflab.sweeps.execution import SweepOptions, carry_out_sweep

    if bool(scheduler) != bool(results):
        problem = "--scheduler and --results need each other: results of cells go to that folder"
        raise ParameterError("perflab sweep", [problem])
    if minutes is not None and scheduler:
        problem = "--minutes works on one host only: --scheduler hands out all cells at once"
        raise ParameterError("perflab sweep", [problem])
    sweep = open_sweep(file)
    cells = sweep.cells
    if dry_run:
        _print_plan(sweep)
        return
    print(_headline(sweep))
    options = SweepOptions(resume=resume, wait_s=wait, minutes=minutes)
    if scheduler:
        from perflab.sweeps.hosts.dispatch import carry_out_on

        outcome = carry_out_on(sweep, options, scheduler, results)
    else:
        outcome = carry_out_sweep(sweep, options)
    counts = ", ".join(f"{count} {state}" for state, count in outcome.states.items())
    print(f"{len(cells)} cells: {counts}")
    print(outcome.folder / "index.html")
    if outcome.states.get("failed"):
        print(
            "perflab: this page says why cells failed, and links their notebooks and logs; "
            "'--resume' tries them again",
            file=sys.stderr,
        )
        raise typer.Exit(SOME_FAILED)
    if minutes is not None and outcome.states.get("done") != len(cells):
        raise typer.Exit(TIME_WAS_UP)


def _headline(sweep: Sweep) -> str:
    trials = sum(cell.trials for cell in sweep.cells)
    return f"{sweep.title}: {len(sweep.cells)} cells, {trials} trials"


def _print_plan(sweep: Sweep) -> None:
    """Print every cell with the time it takes, as far as earlier runs tell, and the whole."""
    from perflab import systems
    from perflab.trials.duration import about, earlier_runs, expected_s

    runs_of = cache(lambda name: [*earlier_runs(name)])
    known = []
    table = Table("cell", "what", "trials", "takes")
    for cell in sweep.cells:
        experiment = systems.experiment(cell.notebook)
        plan = experiment.plan(experiment.check(cell.parameters))
        seconds = expected_s(plan, runs_of(cell.notebook))
        known += [seconds] if seconds else []
        takes = about(seconds) if seconds else "not known"
        table.add_row(cell.id, cell.label, str(cell.trials), takes)
    print_table(table)
    of = "" if len(known) == len(sweep.cells) else f" for {len(known)} of the cells"
    print(_headline(sweep) + (f"; {about(sum(known))}{of}, by earlier runs" if known else ""))


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
