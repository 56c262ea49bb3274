"""``perflab show``: the answers of a run, all of it (``--full``), or the summary of a load."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    reference: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="id or an end of it, path; latest or latest:EXPERIMENT; or the folder of "
            "'perflab load --out'",
        ),
    ] = "latest",
    full: Annotated[
        bool, typer.Option("--full", help="every trial, noise, and every verdict with its numbers")
    ] = False,
) -> None:
    """Show one run: its answers, what each treatment did, and what disturbed it.

    For the folder of a load: its summary, and where the time went.

    Example: perflab show latest:synchronous_commit

    Example: perflab show result
    """
    from perflab.cli.actions.show import show_load, show_run

    if (Path(reference) / "load.json").is_file():
        show_load(Path(reference))
    else:
        show_run(reference, full=full)
