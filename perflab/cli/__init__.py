"""The command line: a file for each command, or for two about the same."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from perflab.cli import (
    claims,
    compare,
    duel,
    experiments,
    export,
    lab,
    load,
    outputs,
    run,
    runs,
    show,
    stack,
    sweep,
)
from perflab.errors import PerflabError, RunInterrupted
from perflab.paths import foreign_environment

app = typer.Typer(
    name="perflab",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for module in (lab, run, duel, sweep, runs, show, claims, compare, export, experiments):
    app.command(name=module.__name__.rpartition(".")[2])(module.command)
app.command(name="worker")(sweep.worker)
app.command(name="doctor")(stack.doctor)
app.command(name="load", cls=load.LoadCommand)(load.command)
app.add_typer(experiments.new_app, name="new")
app.add_typer(stack.app, name="stack")
app.command(name="import")(runs.import_results)


def _print_version(requested: bool) -> None:
    if requested:
        from importlib import metadata

        print(f"perflab {metadata.version('perflab')}")
        raise typer.Exit


@app.callback()
def _before_any_command(
    version: Annotated[
        bool,
        typer.Option("--version", help="print the version", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """A performance laboratory: doubtful measurements are marked, and never silently used."""


def main() -> None:
    """Run the command line; an error for the user is printed and gives exit status 1."""
    try:
        # Children work in other folders and would find another perflab.toml, or none.
        os.environ.update(foreign_environment())
        with outputs.usable():
            app(prog_name="perflab")
    except RunInterrupted as error:
        print(f"perflab: {error}", file=sys.stderr)
        sys.exit(130)
    except PerflabError as error:
        print(f"perflab: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("perflab: interrupted", file=sys.stderr)
        sys.exit(130)
