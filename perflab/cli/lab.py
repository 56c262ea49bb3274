"""``perflab lab``: runs the experiments of the main job, and draws them in their notebooks."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "-p", "--parameter", help="key=value, for the notebooks that have it; repeatable"
        ),
    ] = None,
    backend: Annotated[
        str, typer.Option(help="auto (Docker where an engine answers), docker or process")
    ] = "auto",
) -> None:
    """Run the core experiments, draw them in their notebooks, and answer their questions.

    Long experiments run with shortened settings. The notebooks show them, and -p changes them. A
    page has a card for each question. Exit status 4: no trial of an experiment counts.

    Example: perflab lab -p blocks=6 --backend process
    """
    from perflab.cli.actions import lab

    lab.carry_out(parameter or [], backend)
