"""Streams that are closed or full, terminals that lack letters, and tables that fit by wrapping."""

from __future__ import annotations

import os
import subprocess
import sys

import pandas as pd
import pytest
from rich.console import Console
from rich.table import Table

from perflab.cli.outputs import print_parts, print_table

FOUR = pd.DataFrame({
    "treatment": ["one", "a longer name"], "ms": ["1.00 [0.90, 1.10]"] * 2,
    "requests/s": ["400 [390, 410]"] * 2, "memory": ["22 [21, 23]"] * 2,
})  # fmt: skip
PERFLAB = [sys.executable, "-c", "from perflab.cli import main; main()"]


def run(*words: str, stdout: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a shell with the redirection ``stdout``."""
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {stdout}', "sh", *PERFLAB, *words],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=60,
    )


def test_with_standard_output_closed_nothing_is_begun() -> None:
    done = run("stack", "ps", stdout=">&-")
    assert done.returncode == 1
    assert done.stderr == (
        "perflab: standard output is closed, so nothing was started; "
        "send it to a file or to /dev/null\n"
    )


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_standard_output_is_a_sentence_and_a_failure(unbuffered: str) -> None:
    done = run("stack", "ps", stdout=">/dev/full", PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 1
    assert done.stderr.startswith("perflab: what was to be shown or recorded cannot be written: ")
    assert done.stderr.endswith("No space left on device\n")


def test_a_reader_that_has_seen_enough_is_no_error_to_speak_of() -> None:
    done = run("experiments", stdout="| true")
    assert done.stderr == ""


def test_other_closed_streams_disturb_nothing() -> None:
    done = run("stack", "ps", stdout="<&- 2>&-")
    assert done.returncode == 0
    assert "no services are up\n" in done.stdout


SAYS = "from perflab.cli import outputs\nwith outputs.usable(): print('\\u2013 \\u03c1 \\u221e')"


def test_letters_that_the_terminal_lacks_become_question_marks() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SAYS],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "? ? ?\n", "")


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


NAMES = ("receivers_per_message_per_user", ".venv/bin/python", "effect.png")


@pytest.mark.parametrize("width", [20, 60, 80])
def test_no_identifier_is_broken_over_lines(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    identified = Table("claim", "of", "where", "file")
    identified.add_row(" ".join([WORDS] * 3), *NAMES)
    print_table(identified)
    lines = capsys.readouterr().out.splitlines()
    for name in NAMES:
        assert any(name in line for line in lines), name
    # The lines of name and value of a narrow console are as wide as they must be, and no wider.
    assert max(map(len, lines)) <= max(width, len(f"claim  {NAMES[0]}"))


@pytest.mark.parametrize(("width", "parts"), [(80, 1), (50, 2), (36, 3)])
def test_a_wide_table_is_printed_in_parts_that_begin_with_its_first_column(
    width: int, parts: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    print_parts(FOUR)
    text = capsys.readouterr().out
    for column in FOUR.columns[1:]:
        assert text.count(column) == 1
    blocks = text.strip().split("\n\n")
    assert len(blocks) == parts
    for block in blocks:
        assert block.splitlines()[0].startswith("treatment")
        assert max(map(len, block.splitlines())) <= width
    print_parts(FOUR[["treatment"]])
    assert "a longer name" in capsys.readouterr().out
