"""Starts, lists, reads and ends services outside a run."""

from __future__ import annotations

from rich.table import Table

from perflab.cli.outputs import make_console, print_table
from perflab.errors import ParameterError
from perflab.host.lock import holder, other_users
from perflab.host.placing import placement
from perflab.parameters import unknown
from perflab.stacks import cleanup, stack_folders
from perflab.stacks.process_backend import BACKENDS, choose
from perflab.stacks.residents import stand
from perflab.systems import ready_stacks


def start(stack: str, backend: str) -> None:
    """Start a stack and leave it running; print the addresses of its services."""
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


def list_services() -> None:
    """Print the services that are up, and who measures."""
    services = cleanup.survey()
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


def print_log(service: str, lines: int) -> None:
    """Print the last lines of a service's log."""
    services = cleanup.everything()
    if problems := unknown("service", [service], sorted(item.service for item in services)):
        raise ParameterError("perflab stack logs", problems)
    for item in services:
        if item.service == service:
            print(cleanup.log_of(item, lines))


def end(*, every: bool) -> None:
    """Remove services, also those of the current measurement where ``every`` is set."""
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
