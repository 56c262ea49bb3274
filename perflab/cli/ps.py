"""``perflab stack ps``: the lab's services on this machine."""

from __future__ import annotations

from rich.table import Table

from perflab.cli.terminal import print_table


def command() -> None:
    """List services the lab has running, and who measures.

    Example: perflab stack ps
    """
    from perflab.host.lock import holder, other_users
    from perflab.stacks.leftovers import survey

    seen = survey()
    busy = holder()
    if busy:
        print(f"measuring now: {busy}")
    for word in other_users():
        print(word)
    found = [item for item in seen if item.is_inside]
    if found:
        table = Table("stack", "service", "kind", "backend", "address", "state")
        for item in found:
            address = f"127.0.0.1:{item.port}" if item.port else ""
            table.add_row(item.stack, item.service, item.kind, item.backend, address, item.state)
        print_table(table)
    else:
        print("no services are up")
    for item in seen:
        if not item.is_inside:
            print(f"under another lock: {item.service} ({item.stack}); its lock is {item.scope}")
