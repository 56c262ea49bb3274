"""The command line: one file per command."""

from __future__ import annotations

import sys

import typer

from perflab.cli import (
    compare,
    down,
    experiments,
    lab,
    load,
    logs,
    outputs,
    ps,
    requests,
    run,
    runs,
    show,
    up,
    verdicts,
)
from perflab.errors import PerflabError, RunInterrupted

app = typer.Typer(
    name="perflab",
    help="A performance laboratory: every number is shown to be true or refused.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for module in (
    lab,
    run,
    runs,
    show,
    verdicts,
    compare,
    experiments,
    load,
    requests,
    up,
    ps,
    logs,
    down,
):
    app.command(name=module.__name__.rpartition(".")[2])(module.command)


def main() -> None:
    """Run the command line; an error for the user is its text and exit status 1."""
    outputs.speak_utf8()
    try:
        with outputs.usable():
            app()
    except RunInterrupted as error:
        print(f"perflab: {error}", file=sys.stderr)
        sys.exit(130)
    except PerflabError as error:
        print(f"perflab: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("perflab: interrupted", file=sys.stderr)
        sys.exit(130)
