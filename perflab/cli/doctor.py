"""``perflab doctor``: what of this machine bears on measurements, and what to do."""

from __future__ import annotations

import typer
from rich.table import Table
from rich.text import Text

from perflab.cli.outputs import print_table

STYLES = {"ok": "green", "beware": "yellow", "wrong": "bold red"}


def command() -> None:
    """Look at engine, disk, cores, neighbours and leftovers; change nothing.

    Exit status 1 when something is wrong: nothing could be measured, or nothing to be trusted.

    Example: perflab doctor
    """
    from perflab.stacks.doctor import examine

    found = examine()
    table = Table("what", "state", "found", "what to do")
    for each in found:
        state = Text(each.state, STYLES[each.state])
        table.add_row(Text(each.what), state, Text(each.found), Text(each.todo))
    print_table(table)
    if any(each.state == "wrong" for each in found):
        raise typer.Exit(1)
