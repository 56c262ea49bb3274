"""``perflab sweep``: many runs from one file."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from perflab.cli.terminal import print_table

if TYPE_CHECKING:
    from perflab.sweeps.cells import Cell, Sweep
    from perflab.sweeps.estimate import Estimate

SOME_FAILED = 3
TIME_WAS_UP = 4


def command(
    file: Annotated[Path, typer.Argument(help="sweep file, such as notebooks/sweeps/quick.yaml")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="print the plan and measure nothing")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="go on with the newest sweep of this file")
    ] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="go on with it, its failed cells included")
    ] = False,
    new: Annotated[
        bool, typer.Option("--new", help="begin anew though the last one is unfinished")
    ] = False,
    only: Annotated[
        str, typer.Option(metavar="TEXT", help="only cells whose id or label has it: workers=2")
    ] = "",
    mixed: Annotated[
        bool, typer.Option("--mixed", help="go on though code or machine changed")
    ] = False,
    wait: Annotated[
        float, typer.Option(min=0, help="seconds to wait for another measurement to end")
    ] = 0.0,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help="measure no longer than this; with blocks=until_decided the next block goes to "
            "the cell that needs it most",
        ),
    ] = None,
    scheduler: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="execute cells on the workers of this Dask scheduler"),
    ] = "",
    store: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="with --scheduler: where hosts publish, a folder or s3://bucket/place, whose keys "
            "come from the environment",
        ),
    ] = "",
) -> None:
    """Execute notebooks over grids, lists, ranges and samples of parameters.

    Every cell is checked before anything starts. Ends with exit status 0 when all cells are done,
    3 when some failed, 4 when time was up before (--resume --minutes goes on), 1 when nothing could
    be started, 130 when it was interrupted.

    Example: perflab sweep notebooks/sweeps/quick.yaml --dry-run
    """
    from perflab.errors import ParameterError
    from perflab.sweeps.cells import open_sweep
    from perflab.sweeps.execution import How, carry_out_sweep, chosen_cells

    if new and (resume or retry):
        raise ParameterError(
            "perflab sweep", ["--new begins anew, --resume and --retry go on; give one of them"]
        )
    if bool(scheduler) != bool(store):
        raise ParameterError(
            "perflab sweep",
            ["--scheduler and --store belong together: hosts publish what their cells leave there"],
        )
    if minutes is not None and scheduler:
        raise ParameterError(
            "perflab sweep", ["--minutes is for one host: with --scheduler hosts take whole cells"]
        )
    sweep = open_sweep(file)
    cells = chosen_cells(sweep, only)
    if not cells:
        labels = "; ".join(cell.label for cell in sweep.cells[:5])
        raise ParameterError("--only", [f"no cell has '{only}'; cells are such as: {labels}"])
    _print_plan(sweep, cells, whole=dry_run)
    if dry_run:
        return
    how = How(
        resume=resume, retry=retry, anew=new, mixed=mixed, only=only, wait_s=wait, minutes=minutes
    )
    if scheduler:
        from perflab.cluster.execution import carry_out_on

        outcome = carry_out_on(sweep, how, scheduler, store)
    else:
        outcome = carry_out_sweep(sweep, how)
    told = ", ".join(f"{count} {state}" for state, count in outcome.states.items())
    print(f"{len(sweep.cells)} cells: {told}")
    print(outcome.folder / "index.html")
    if outcome.failed:
        print(
            f"perflab: notebooks and logs of failed cells are in {outcome.folder / 'cells'}; "
            "'--retry' tries them again",
            file=sys.stderr,
        )
        raise typer.Exit(SOME_FAILED)
    if minutes is not None and outcome.unfinished:
        raise typer.Exit(TIME_WAS_UP)


def _print_plan(sweep: Sweep, cells: Sequence[Cell], whole: bool) -> None:
    """Print cells, time and disk; of a plan that is carried out at once only the last line."""
    from perflab.paths import runs_dir
    from perflab.recordings import list_runs
    from perflab.sweeps.estimate import estimated, past_runs

    past = past_runs(list_runs(runs_dir()))
    estimates = [estimated(cell, past) for cell in cells]
    if whole:
        table = Table("cell", "what", "trials", "measuring", "disk", "told from")
        for cell, each in zip(cells, estimates, strict=True):
            table.add_row(cell.id, cell.label, str(cell.trials), *_time_and_disk(each), each.source)
        print_table(table)
    print(f"{sweep.title}: {_in_all(cells, estimates)}")
    room = shutil.disk_usage(_existing(runs_dir())).free
    if sum(each.size_bytes or 0 for each in estimates) > room:
        print(f"perflab: only {_megabytes(room)} are free in {runs_dir()}", file=sys.stderr)


def _time_and_disk(each: Estimate) -> tuple[str, str]:
    from perflab.progress import minutes

    if each.seconds is None or each.size_bytes is None:
        return "?", "?"
    return minutes(each.seconds), _megabytes(each.size_bytes)


def _in_all(cells: Sequence[Cell], estimates: Sequence[Estimate]) -> str:
    from perflab.numerals import counted
    from perflab.progress import minutes

    known = [each for each in estimates if each.seconds is not None]
    what = f"{counted(len(cells), 'cell')}, {sum(cell.trials for cell in cells)} trials"
    if not known:
        return f"{what}; time and disk are not known: there is no earlier run of these notebooks"
    seconds = sum(each.seconds or 0 for each in known)
    size_bytes = sum(each.size_bytes or 0 for each in known)
    left = len(estimates) - len(known)
    unknown = f", and {counted(left, 'cell')} of which there is no earlier run" if left else ""
    return (
        f"{what}; about {minutes(seconds)} of measuring (tables and figures come on top) and "
        f"{_megabytes(size_bytes)} by earlier runs{unknown}"
    )


def _megabytes(size_bytes: float) -> str:
    return f"{size_bytes / 1e6:,.1f} MB"


def _existing(folder: Path) -> Path:
    return next(place for place in (folder, *folder.parents) if place.exists())
