"""``perflab down``: end and remove the lab's services."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    every: Annotated[
        bool, typer.Option("--all", help="also the services of a measurement under way")
    ] = False,
) -> None:
    """Stop and remove services of the lab, whatever a crash left behind included."""
    from perflab.host.lock import holder
    from perflab.stacks import leftovers

    busy = holder()
    kind = "up" if busy and not every else None
    removed = leftovers.remove_of_kind(kind)
    for item in removed:
        print(f"removed {item.service} ({item.stack}, {item.backend})")
    for folder in leftovers.orphaned_folders():
        leftovers.remove_folder(folder)
    if not removed:
        print("nothing was up")
    if busy and not every:
        print(f"left alone: the services of {busy}, which is measuring (--all ends them too)")
