"""The command line: a file for each command, or for two about the same."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from typing import Annotated, Any

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
from perflab.cli.duel_status import LAB_FAILED, status_of_error
from perflab.errors import (
    ParameterError,
    PerflabError,
    RunInterrupted,
    TargetRefused,
    not_installed,
)
from perflab.host.shortages import told
from perflab.paths import foreign_environment

app = typer.Typer(
    name="perflab",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Paragraphs are wrapped to the width of the terminal, once.
    rich_markup_mode="markdown",
)
# By group: each command, and what it does in a few words.
GROUPS: dict[str, dict[str, tuple[Any, str]]] = {
    "Your own service": {
        "duel": (duel.command, "which of two versions is slower, and by how much"),
        "load": (load.command, "send load to an address, or search its capacity"),
    },
    "Experiments": {
        "lab": (lab.command, "the main job: four questions, one page of answers"),
        "experiments": (experiments.command, "what there is, and the parameters of one"),
        "run": (run.command, "carry out an experiment"),
        "sweep": (sweep.command, "execute notebooks over many parameters"),
        "worker": (sweep.worker, "carry out cells of a sweep on this host"),
        "new": (experiments.new_app, "make a project, notebook or experiment"),
    },
    "Results": {
        "runs": (runs.command, "list the recorded runs"),
        "show": (show.command, "one run: its answers; --full: every trial"),
        "compare": (compare.command, "ratios between runs, with a gate"),
        "claims": (claims.command, "every published number with its result here"),
        "export": (export.command, "sections and figures for a document"),
        "import": (runs.import_results, "results of ab, Locust, k6, oha and wrk"),
    },
    "This machine": {
        "doctor": (stack.doctor, "check engine, disk, cores and leftovers"),
        "stack": (stack.app, "start, list, read and remove services"),
    },
}
for group, members in GROUPS.items():
    for name, (member, words) in members.items():
        if isinstance(member, typer.Typer):
            app.add_typer(member, name=name, rich_help_panel=group, short_help=words)
        else:
            app.command(name, rich_help_panel=group, short_help=words)(member)

# The exit statuses of errors; of all others it is 1. typer ends with 2, too, for a wrong option.
STATUSES = {ParameterError: 2, TargetRefused: 2, RunInterrupted: 130}


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
    """A performance laboratory: doubtful measurements are marked, and never silently used.

    Example: perflab duel --variant old=git:.@v1.2 --variant new=git:.@HEAD
    --command 'python3 app.py {port}'
    """


ENDING = (signal.SIGTERM, signal.SIGHUP)


def _interrupted(number: int, _frame: object) -> None:
    for other in ENDING:  # a second one would end what the first lets end in order
        signal.signal(other, signal.SIG_IGN)
    raise KeyboardInterrupt(signal.Signals(number).name)


def main() -> None:
    """Run the command line; an error for the user is printed, and gives an exit status.

    What ends it from outside (SIGTERM of a job that is cancelled) ends it in order, like Ctrl-C.
    """
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores one
            signal.signal(number, _interrupted)
    is_bisection = {"duel", "--bisect"} <= {*sys.argv}
    try:
        # Children work in other folders and would find another perflab.toml, or none.
        os.environ.update(foreign_environment())
        with outputs.usable():
            app(prog_name="perflab")
    except SystemExit as end:
        # Others end it where an option cannot be read, or the reader of a pipe is gone.
        is_of_command = isinstance(end.__context__, typer.Exit)
        sys.exit(LAB_FAILED if is_bisection and not is_of_command else end.code)
    except KeyboardInterrupt:
        print("perflab: interrupted", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        if words := _in_words(error):
            print(f"perflab: {words}", file=sys.stderr)
        else:
            traceback.print_exc()
        sys.exit(status_of_error(error) if is_bisection else STATUSES.get(type(error), 1))


def _in_words(error: Exception) -> str:
    """Return an error for the user in a sentence; empty for others, which need a traceback."""
    if isinstance(error, PerflabError):
        return str(error)
    if isinstance(error, OSError):
        of_file = f"{error.filename}: {error.strerror}" if error.filename else ""
        return told(error) or of_file
    return not_installed(error)
