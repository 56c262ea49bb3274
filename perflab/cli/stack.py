"""``perflab stack``: services outside a run; ``perflab doctor``: is this machine fit to measure?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from perflab.cli.outputs import make_console, print_table
from perflab.errors import ParameterError

if TYPE_CHECKING:
    from perflab.stacks.doctor import Finding

app = typer.Typer(no_args_is_help=True, help="Start, list, read and remove services outside a run.")
STYLES = {"ok": "green", "beware": "yellow", "wrong": "bold red"}


@app.command()
def up(
    stack: Annotated[str, typer.Argument(help="stack to start; an unknown name lists all stacks")],
    backend: Annotated[str, typer.Option(help="auto, docker or process")] = "auto",
) -> None:
    """Start a stack and leave it running; 'perflab stack down' ends it.

    Example: perflab stack up NAME --backend process
    """
    from perflab.host.placing import placement
    from perflab.parameters import unknown
    from perflab.stacks.process_backend import BACKENDS, choose
    from perflab.stacks.residents import stand
    from perflab.systems import ready_stacks

    stacks = ready_stacks()
    problems = [*unknown("stack", [stack], stacks), *unknown("backend", [backend], BACKENDS)]
    if problems:
        raise ParameterError("perflab stack up", problems)
    console = make_console()
    chosen = stacks[stack]
    for name, url in stand(chosen.plan(), choose(backend), placement(), console.print).items():
        console.print(f"{name}: {url}", highlight=False)
    if chosen.hint:
        console.print(chosen.hint, highlight=False, markup=False)


@app.command()
def ps() -> None:
    """List the lab's services that are up, and the current measurement.

    Example: perflab stack ps
    """
    from perflab.host.lock import holder, other_users
    from perflab.stacks.cleanup import survey

    services = survey()
    if busy := holder():
        print(f"measuring now: {busy}")
    for word in other_users():
        print(word)
    ours = [item for item in services if item.is_inside]
    if ours:
        table = Table("stack", "service", "kind", "backend", "address", "state")
        for item in ours:
            address = f"127.0.0.1:{item.port}" if item.port else ""
            table.add_row(item.stack, item.service, item.kind, item.backend, address, item.state)
        print_table(table)
    else:
        print("no services are up")
    for item in services:
        if not item.is_inside:
            print(f"under another lock: {item.service} ({item.stack}); its lock is {item.scope}")


@app.command()
def logs(
    service: Annotated[str, typer.Argument(help="service, as 'perflab stack ps' names it")],
    lines: Annotated[int, typer.Option("-n", "--lines", min=1)] = 50,
) -> None:
    """Print the last log lines of a service that is up.

    Example: perflab stack logs postgres
    """
    from perflab.parameters import unknown
    from perflab.stacks.cleanup import everything, log_of

    services = everything()
    if problems := unknown("service", [service], sorted(item.service for item in services)):
        raise ParameterError("perflab stack logs", problems)
    for item in services:
        if item.service == service:
            print(log_of(item, lines))


@app.command()
def down(
    every: Annotated[
        bool, typer.Option("--all", help="also the services of the current measurement")
    ] = False,
) -> None:
    """Stop and remove the lab's services, and those that a crash left behind.

    Example: perflab stack down --all
    """
    from perflab.stacks import cleanup, stack_folders

    removed, measuring = (
        (cleanup.remove_of_kind(None), None) if every else cleanup.remove_unmeasured()
    )
    for item in removed:
        print(f"removed {item.service} ({item.stack}, {item.backend})")
    for folder in cleanup.orphaned_folders():
        stack_folders.remove_folders(folder.name)
        print(f"removed {folder}, which a crash left behind")
    if not removed:
        print("no services were up")
    if measuring:
        print(f"left alone: the services of {measuring}, which is measuring (--all ends them too)")
    for item in (item for item in cleanup.survey() if not item.is_inside):
        print(
            f"left alone: {item.service} ({item.stack}) under another lock; "
            f"'PERFLAB_LOCK={item.scope} perflab stack down' ends it"
        )


def doctor() -> None:
    """Check the engine, disk, cores, other load and leftovers of this machine; change nothing.

    Where a perflab.toml is, the same is checked as before a duel of the commit that is checked out:
    programs, stores, ports, addresses, variables, the repository.

    Exit status 1 if something would prevent or spoil measurements.

    Example: perflab doctor
    """
    from perflab.stacks.doctor import examine

    findings = [*_of_the_project(), *examine()]
    table = Table("what", "state", "found", "what to do")
    for finding in findings:
        state = Text(finding.state, STYLES[finding.state])
        table.add_row(Text(finding.what), state, Text(finding.found), Text(finding.todo))
    print_table(table)
    if any(finding.state == "wrong" for finding in findings):
        raise typer.Exit(1)


def _of_the_project() -> list[Finding]:
    """Return what of the project's ``perflab.toml`` does not work here."""
    from perflab.cli.duel_file import (
        problems_of_project,
        says_what_is_requested,
        unused_stores,
    )
    from perflab.project import DUELS, FILE, project_file
    from perflab.stacks.doctor import BEWARE, OK, WRONG, Finding

    try:
        problems = problems_of_project(DUELS)
    except ParameterError as error:
        problems = list(error.problems)
    if problems == []:
        doubts = [
            (f"nothing gets the address of the store '{name}', so the service cannot reach it",
             f'write "{{{name}.url}}" in [service.env], command or setup, or leave it out')
            for name in unused_stores()
        ]  # fmt: skip
        if not says_what_is_requested():
            text = "nothing says what users request: it is GET /"
            doubts.append((text, "write path in [load], or [[load.requests]]"))
        can_begin = Finding(FILE, OK, "a duel of its service can begin")
        return [Finding(FILE, BEWARE, *doubt) for doubt in doubts] or [can_begin]
    before = f"{project_file()}, "
    findings = []
    for problem in problems or ():
        line, _, found = problem.rpartition(before)[2].partition(": ")
        is_placed = problem.startswith(before)
        todo = f"mend {line} of {FILE}" if is_placed else "mend that, or what names it"
        findings.append(Finding(FILE, WRONG, found if is_placed else problem, todo))
    return findings
