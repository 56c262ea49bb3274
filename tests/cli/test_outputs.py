"""Streams that are closed or full, and terminals that lack letters."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PERFLAB = [sys.executable, "-c", "from perflab.cli import main; main()"]


def run(
    *words: str, stdout: str = "", without: tuple[str, ...] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command line from a shell that has done ``stdout`` to its standard output."""
    kept = {name: value for name, value in os.environ.items() if name not in without}
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {stdout}', "sh", *PERFLAB, *words],
        env=kept | environment,
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
    assert done.stderr == (
        "perflab: what was to be shown or recorded cannot be written: No space left on device\n"
    )


def test_a_reader_that_has_seen_enough_is_no_error_to_speak_of() -> None:
    done = run("experiments", stdout="| true")
    assert done.stderr == ""


@pytest.mark.parametrize("stream", ["<&-", "2>&-"])
def test_other_closed_streams_disturb_nothing(stream: str) -> None:
    done = run("stack", "ps", stdout=stream)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no services are up\n" in done.stdout


@pytest.mark.parametrize("missing", [("HOME",), ("PATH",), ("HOME", "PATH", "USER", "LANG")])
def test_the_command_line_needs_neither_home_nor_path(missing: tuple[str, ...]) -> None:
    done = subprocess.run(
        [*PERFLAB, "stack", "ps"],
        env={name: value for name, value in os.environ.items() if name not in missing},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


SAYS = "from perflab.cli import outputs\nwith outputs.usable(): print('\\u2013 \\u03c1 \\u221e')"
IN_UTF8 = (
    "import pathlib, sys\nfrom perflab.cli import outputs\noutputs.speak_utf8()\n"
    "with outputs.usable():\n"
    "    pathlib.Path(sys.argv[1]).write_text('\\u03c1'); print('\\u03c1')"
)
OLD_TERMINAL = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_letters_that_the_terminal_lacks_become_question_marks() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SAYS],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "? ? ?\n", "")


def test_in_another_locale_files_are_utf8_and_the_terminal_gets_what_it_can(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(IN_UTF8)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "file")],
        env={name: value for name, value in os.environ.items() if name != "PYTHONIOENCODING"}
        | OLD_TERMINAL,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "?\n", "")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "\u03c1"
