"""Every test is in one group of tests, whatever its markers, and all groups decide on a commit."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import pytest

from perflab.paths import project_root
from tests.support.spreading import spread

ROOT = project_root()
TARGETS = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
SHARED = "--numprocesses"


@cache
def markers() -> list[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]
    return [text.partition(":")[0] for text in settings["ini_options"]["markers"]]


def sessions(target: str) -> list[list[str]]:
    """Return the words of every session of pytest that a target of make starts, in order."""
    done = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", target, "ARGS="],
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


@pytest.mark.parametrize("target", TESTING)
def test_a_session_that_reads_some_files_reads_all_that_have_a_test_of_its_group(
    target: str, collected: list[pytest.Item]
) -> None:
    files_by_markers: dict[frozenset[str], set[str]] = {}
    for test in collected:
        own = frozenset(mark.name for mark in test.iter_markers())
        files_by_markers.setdefault(own, set()).add(test.nodeid.partition("::")[0])
    limited = 0
    for words in sessions(target):
        read = {word for word in words if word.startswith("tests/")}
        expression = words[words.index("-m") + 1]
        needed = [files for own, files in files_by_markers.items() if chosen(expression, {*own})]
        assert not read or set().union(*needed) <= read
        limited += bool(read)
    assert limited


def test_each_process_begins_with_the_files_whose_tests_may_take_longest() -> None:
    limits_s = {"a": None, "b": None, "c": 600, "d": 900, "e": 600}
    tests = [
        SimpleNamespace(
            path=Path(name),
            get_closest_marker=lambda _, limit_s=limit_s: (
                limit_s and SimpleNamespace(args=[limit_s])
            ),
        )
        for name, limit_s in limits_s.items()
        for _ in range(2)
    ]
    order = "".join(str(test.path) for test in spread(tests, 2))
    assert order == "ddeea" + "ccabb"


def test_the_check_of_a_commit_runs_all_groups() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    steps = [line.strip() for line in lines if re.match(r"\s*(make|\S*/python scripts)\b", line)]
    assert steps == ["make test", ".venv/bin/python scripts/studies.py --check", "make slow"]
    assert "set -euo pipefail" in lines
