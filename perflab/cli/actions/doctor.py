"""Says whether this machine, and the project's service on it, are fit to measure."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from perflab.cli.duel_file import problems_of_project, says_what_is_requested, unused_stores
from perflab.cli.outputs import print_table
from perflab.errors import ParameterError
from perflab.project import DUELS, FILE, project_file
from perflab.stacks.doctor import BEWARE, OK, WRONG, Finding, examine

STYLES = {OK: "green", BEWARE: "yellow", WRONG: "bold red"}


def print_findings() -> bool:
    """Print what was found; return whether nothing prevents or spoils measurements."""
    findings = [*_of_the_project(), *examine()]
    table = Table("what", "state", "found", "what to do")
    for finding in findings:
        state = Text(finding.state, STYLES[finding.state])
        table.add_row(Text(finding.what), state, Text(finding.found), Text(finding.todo))
    print_table(table)
    return all(finding.state != WRONG for finding in findings)


def _of_the_project() -> list[Finding]:
    """Return what of the project's ``perflab.toml`` does not work here."""
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
