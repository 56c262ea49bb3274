"""The command line: one file per command."""

from __future__ import annotations

import os
import sys
from importlib import metadata
from typing import Annotated

import typer

from perflab.cli import (
    claims,
    compare,
    doctor,
    duel,
    experiments,
    export,
    importing,
    lab,
    load,
    new,
    outputs,
    run,
    runs,
    show,
    stack,
    sweep,
    worker,
)
from perflab.errors import PerflabError, RunInterrupted
from perflab.paths import foreign_environment

app = typer.Typer(
    name="perflab",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for module in (
    lab, run, duel, sweep, runs, show, claims, compare, export, experiments, worker, doctor
):  # fmt: skip
    app.command(name=module.__name__.rpartition(".")[2])(module.command)
app.command(name="load", cls=load.LoadCommand)(load.command)
app.add_typer(new.app, name="new")
app.add_typer(stack.app, name="stack")
# "import" cannot be the name of a module.
app.command(name="import")(importing.command)


def _print_version(requested: bool) -> None:
    if requested:
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
