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
    completion,
    doctor,
    down,
    duel,
    experiments,
    export,
    figures,
    importing,
    lab,
    load,
    logs,
    new,
    outputs,
    own_folder,
    ps,
    requests,
    run,
    runs,
    show,
    sweep,
    trend,
    up,
    verdicts,
    verify,
    worker,
)
from perflab.errors import PerflabError, RunInterrupted

app = typer.Typer(
    name="perflab",
    no_args_is_help=True,
    # 'perflab completion' does what its two options would do, which help need not list.
    add_completion=False,
    pretty_exceptions_enable=False,
)
FIND_EXPERIMENTS = (
    lab, run, sweep, show, verdicts, claims, compare, trend, experiments, up, worker
)  # fmt: skip
for module in (
    lab,
    run,
    duel,
    sweep,
    runs,
    show,
    verdicts,
    claims,
    compare,
    trend,
    figures,
    verify,
    export,
    experiments,
    load,
    requests,
    up,
    ps,
    logs,
    down,
    worker,
    doctor,
    completion,
):
    found = module.command
    if module in FIND_EXPERIMENTS:
        found = own_folder.finding_experiments(found)
    app.command(name=module.__name__.rpartition(".")[2])(found)


app.add_typer(new.app, name="new")
# No module can be called as this command is.
app.command(name="import", cls=importing.GroupedFiles)(importing.command)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"perflab {metadata.version('perflab')}")
        raise typer.Exit


@app.callback()
def _before_any_command(
    version: Annotated[
        bool,
        typer.Option("--version", help="print the version", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """A performance laboratory: every number is shown to be true or refused."""


def main() -> None:
    """Run the command line; an error for the user is its text and exit status 1."""
    outputs.speak_utf8()
    if completion.VARIABLE in os.environ:
        completion.prepare()
    try:
        own_folder.hand_on()
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
