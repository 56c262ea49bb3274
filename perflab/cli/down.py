"""``perflab stack down``: end and remove the lab's services."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    every: Annotated[
        bool, typer.Option("--all", help="also the services of a measurement under way")
    ] = False,
) -> None:
    """Stop and remove services of the lab, whatever a crash left behind included.

    Example: perflab stack down --all
    """
    from perflab.host.lock import Holder
    from perflab.stacks import leftovers
    from perflab.stacks.stack_folders import remove_stack

    measuring: Holder | None = None
    if every:
        removed = leftovers.remove_of_kind(None)
    else:
        removed, measuring = leftovers.remove_unmeasured()
    for item in removed:
        print(f"removed {item.service} ({item.stack}, {item.backend})")
    for folder in leftovers.orphaned_folders():
        remove_stack(folder.name)
    if not removed:
        print("nothing was up")
    if measuring:
        print(f"left alone: the services of {measuring}, which is measuring (--all ends them too)")
    for item in (item for item in leftovers.survey() if not item.is_inside):
        print(
            f"left alone: {item.service} ({item.stack}) under another lock; "
            f"'PERFLAB_LOCK={item.scope} perflab stack down' ends it"
        )
