"""Streams that are closed or full, and terminals that lack letters."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

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
