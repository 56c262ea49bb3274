"""Tables fit their console by wrapping, and have no lines around cells in a pipe."""

from __future__ import annotations

import pytest
from rich.console import Console
from rich.table import Table

from perflab.cli.outputs import print_table

WORDS = "every word of this sentence can be found again"
LONG = "20260102T030405Z-synchronous_commit-000001"


def table(columns: int) -> Table:
    filled = Table(*(f"column {number}" for number in range(columns)), title="A title")
    for row in range(2):
        filled.add_row(*(f"{WORDS} {row}.{number}" for number in range(columns)))
    return filled


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("columns", [1, 3, 12])
def test_nothing_is_cut_and_no_line_is_too_long(
    width: int,
    columns: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    print_table(table(columns))
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= width
    for word in WORDS.split():
        assert text.count(word) == 2 * columns, word
    # A pipe gets no lines around cells, and no blanks at the ends of lines.
    assert text.isascii()
    assert all(line == line.rstrip() for line in text.splitlines())


def test_a_terminal_of_80_columns_shows_every_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(width=80, force_terminal=True, color_system=None, record=True)
    monkeypatch.setattr("perflab.cli.outputs.make_console", lambda: terminal)
    wide = Table("run", "state", "backend", "blocks", "valid", show_lines=True)
    wide.columns[0].no_wrap = True
    wide.add_row(LONG, "interrupted", "process", "6/6", "12/12")
    print_table(wide)
    lines = terminal.export_text().splitlines()
    assert any(LONG in line and "interrupted" in line and "12/12" in line for line in lines)
    assert max(map(len, lines)) <= 80
