"""Every test is in one group of tests, whatever its markers, and all groups decide on a commit."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from itertools import combinations

import pytest

from perflab.paths import project_root

ROOT = project_root()
TARGETS = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
SHARED = "--numprocesses"


def markers() -> list[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]
    return [text.partition(":")[0] for text in settings["ini_options"]["markers"]]


def sessions(target: str) -> list[list[str]]:
    """Return the words of every session of pytest that a target of make starts, in order."""
    done = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", target],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = [line.partition("||")[0] for line in done.stdout.splitlines() if "-m pytest" in line]
    found = [shlex.split(line) for line in lines]
    return [words[words.index("pytest") + 1 :] for words in found]


def expressions(target: str) -> list[str]:
    return [words[words.index("-m") + 1] for words in sessions(target)]


def chosen(expression: str, own: set[str]) -> bool:
    """Return whether a test with these markers is chosen (`-m` is read like Python)."""
    return bool(eval(expression, {"__builtins__": {}}, {name: name in own for name in markers()}))


def sets_of_markers() -> Iterator[set[str]]:
    for number in range(len(markers()) + 1):
        yield from map(set, combinations(markers(), number))


TESTING = [target for target in TARGETS if sessions(target)]


def test_every_test_is_in_exactly_one_group() -> None:
    groups = [expression for target in TESTING for expression in expressions(target)]
    for own in sets_of_markers():
        assert sum(chosen(group, own) for group in groups) == 1, own


@pytest.mark.parametrize("target", TESTING)
def test_what_measures_has_the_cores_to_itself_and_the_rest_shares_them(target: str) -> None:
    other = {"slow"} if target == "slow" else set()
    for words in sessions(target):
        assert chosen(words[words.index("-m") + 1], {"alone", *other}) == (SHARED not in words)


def test_the_check_of_a_commit_runs_all_groups() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    steps = [line.strip() for line in lines if re.match(r"\s*(make|\S*/python scripts)\b", line)]
    assert steps == ["make test", ".venv/bin/python scripts/studies.py --check", "make slow"]
    assert "set -euo pipefail" in lines
