"""``perflab doctor``: checks whether this machine is fit to measure."""

from __future__ import annotations

import typer
from rich.table import Table
from rich.text import Text

from perflab.cli.outputs import print_table

STYLES = {"ok": "green", "beware": "yellow", "wrong": "bold red"}


def command() -> None:
    """Check the engine, disk, cores, other load and leftovers of this machine; change nothing.

    Exit status 1 if something would prevent or spoil measurements.

    Example: perflab doctor
    """
    from perflab.stacks.doctor import examine

    findings = examine()
    table = Table("what", "state", "found", "what to do")
    for finding in findings:
        state = Text(finding.state, STYLES[finding.state])
        table.add_row(Text(finding.what), state, Text(finding.found), Text(finding.todo))
    print_table(table)
    if any(finding.state == "wrong" for finding in findings):
        raise typer.Exit(1)
