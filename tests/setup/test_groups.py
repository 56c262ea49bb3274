"""Every test is in one group of tests, whatever its markers, and all groups decide on a commit."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

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


def test_two_commands_test() -> None:
    assert TESTING == ["test", "slow"]


def test_every_test_is_in_exactly_one_group() -> None:
    groups = [expression for target in TESTING for expression in expressions(target)]
    for own in sets_of_markers():
        assert sum(chosen(group, own) for group in groups) == 1, own


def test_the_quick_tests_need_nothing_that_is_slow_or_may_be_missing() -> None:
    for own in sets_of_markers():
        quick = any(chosen(group, own) for group in expressions("test"))
        assert quick == (not own & {"slow", "docker", "browser"}), own


@pytest.mark.parametrize("target", TESTING)
def test_what_measures_has_the_cores_to_itself_and_the_rest_shares_them(target: str) -> None:
    other = {"slow"} if target == "slow" else set()
    for words in sessions(target):
        assert chosen(words[words.index("-m") + 1], {"alone", *other}) == (SHARED not in words)


def test_the_check_of_a_commit_runs_all_groups_before_the_promises() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    steps = [line.strip() for line in lines if re.match(r"\s*(make|\S*/python scripts)\b", line)]
    assert steps == [
        "make test || once_more",
        "make slow || once_more",
        ".venv/bin/python scripts/mutations.py --fast",
    ]
    assert "set -euo pipefail" in lines


def ended(folder: Path, status: int, tests: str) -> subprocess.CompletedProcess[str]:
    """Run the check of a commit up to what follows `make`, which ends so, in a folder of tests."""
    text = (ROOT / ".ci" / "run").read_text()
    (once_more,) = re.findall(r"^once_more\(\) \{.*?^\}", text, re.MULTILINE | re.DOTALL)
    (folder / "test_it.py").write_text(tests)
    python = folder / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    # No link: some interpreters take the folder of a link for that of their packages.
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    first = f"{shlex.quote(sys.executable)} -m pytest -q test_it.py" if tests else f"exit {status}"
    script = f"set -euo pipefail\nstep() {{ :; }}\n{once_more}\n({first}) || once_more\necho on\n"
    environment = {key: value for key, value in os.environ.items() if "PYTEST" not in key}
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("tests", "goes_on"),
    [
        ("def test_sound(): pass\n", True),
        ("def test_broken(): assert False\n", False),
        (
            "from pathlib import Path\ndef test_disturbed():\n    seen = Path('seen')\n"
            "    known = seen.exists()\n    seen.touch()\n    assert known\n",
            True,
        ),
        ("def test_broken(\n", False),
        ("", False),
    ],
    ids=["all pass", "fails twice", "fails once", "no test can be read", "no test failed"],
)
def test_what_failed_once_has_one_more_try_and_nothing_else_is_forgiven(
    tests: str, goes_on: bool, tmp_path: Path
) -> None:
    done = ended(tmp_path, 2, tests)
    assert (done.returncode == 0) == goes_on, done.stdout + done.stderr
    assert done.stdout.endswith("on\n") == goes_on


@pytest.mark.parametrize("target", TESTING)
def test_what_measures_is_tested_also_where_what_shares_the_cores_failed(target: str) -> None:
    text = (ROOT / "Makefile").read_text()
    (recipe,) = re.findall(rf"^{target}: .*\n((?:\t.*\n)+)", text, re.MULTILINE)
    assert recipe.count("$(TESTS)") == recipe.count("|| failed=1; \\\n") == 2
    assert recipe.endswith("exit $$failed\n")


def test_each_command_that_tests_is_explained() -> None:
    told = (ROOT / "CONTRIBUTING.md").read_text()
    for target in TESTING:
        assert f"`make {target}`" in told
        assert re.search(rf"^{target}: .*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
