"""A test that measures has three tries, every other test one, and each further try is told."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from perflab.paths import project_root

CONFTEST = """
import pytest
from tests.tried_again import *

@pytest.fixture(scope="session", autouse=True)
def places():
    print("places made", file=open("fixtures.txt", "a"))
    yield "here"
    print("places gone", file=open("fixtures.txt", "a"))

@pytest.fixture(scope="module")
def service(places):
    print("service up", file=open("fixtures.txt", "a"))
    yield places
    print("service down", file=open("fixtures.txt", "a"))
"""
SETTINGS = """[pytest]
addopts = -q --strict-markers
markers =
    alone: measures
    measures: measures, too
    slow: starts services
"""
TRIES = """
import pathlib

def tried(name):
    path = pathlib.Path(name)
    path.write_text(path.read_text() + "x" if path.exists() else "x")
    return len(path.read_text())

"""


class Outcome:
    """What a session of tests said, and how often each test was tried."""

    def __init__(self, folder: Path, tests: str, *words: str) -> None:
        (folder / "conftest.py").write_text(CONFTEST)
        (folder / "pytest.ini").write_text(SETTINGS)
        (folder / "test_it.py").write_text("import pytest, time\n" + TRIES + tests)
        environment = {**os.environ, "PYTHONPATH": str(project_root())}
        for name in ("PYTEST_ADDOPTS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
            environment.pop(name, None)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        self.status = done.returncode
        self.text = done.stdout + done.stderr
        self.told = re.findall(r"^tried again: (\S+) \((.*)\)$", done.stdout, re.MULTILINE)
        names = [path for path in folder.iterdir() if not path.suffix and path.is_file()]
        self.tries = {path.name: len(path.read_text()) for path in names}
        fixtures = folder / "fixtures.txt"
        self.fixtures = fixtures.read_text().splitlines() if fixtures.exists() else []


@pytest.mark.parametrize("words", [(), ("--numprocesses", "2", "--dist", "worksteal")], ids=len)
@pytest.mark.parametrize("marker", ["alone", "measures"])
def test_what_measures_fails_only_where_it_fails_three_times(
    marker: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    found = Outcome(tmp_path, f"""
@pytest.mark.{marker}
def test_broken():
    tried("broken")
    assert 3 < 1, "too slow"

@pytest.mark.{marker}
def test_disturbed():
    assert tried("disturbed") == 3

@pytest.mark.{marker}
def test_sound():
    tried("sound")

def test_exact():
    tried("exact")
    assert 2 < 1

@pytest.mark.slow
def test_with_services():
    tried("with_services")
    assert 2 < 1
""", *words)  # fmt: skip
    assert found.status == 1, found.text
    assert found.tries == {"broken": 3, "disturbed": 3, "sound": 1, "exact": 1, "with_services": 1}
    assert "3 failed, 2 passed" in found.text
    for name in ("broken", "exact", "with_services"):
        assert f"FAILED test_it.py::test_{name}" in found.text
    assert sorted(found.told) == [
        *[("test_it.py::test_broken", "AssertionError: too slow")] * 2,
        ("test_it.py::test_disturbed", "AssertionError: assert 1 == 3"),
        ("test_it.py::test_disturbed", "AssertionError: assert 2 == 3"),
    ]


def test_where_nothing_was_tried_again_nothing_is_said(tmp_path: Path) -> None:
    found = Outcome(tmp_path, "@pytest.mark.alone\ndef test_sound(): pass\n")
    assert (found.status, found.told) == (0, [])
    assert "tried again" not in found.text


def test_what_all_tests_of_a_module_share_is_made_once_and_ended_once(tmp_path: Path) -> None:
    found = Outcome(tmp_path, """
@pytest.mark.alone
def test_disturbed(service):
    assert service == "here" and tried("disturbed") == 3

def test_the_next(service):
    assert service == "here"

@pytest.mark.alone
def test_the_last(service):
    assert tried("last") == 2
""")  # fmt: skip
    assert found.status == 0, found.text
    assert found.fixtures == ["places made", "service up", "service down", "places gone"]
    assert len(found.told) == 3


def test_what_cannot_be_made_is_made_again_by_the_next_try(tmp_path: Path) -> None:
    found = Outcome(tmp_path, """
@pytest.fixture(scope="module")
def slow_service():
    assert tried("service") == 2, "not ready in time"
    yield

@pytest.mark.alone
def test_it(slow_service): pass
""")  # fmt: skip
    assert found.status == 0, found.text
    assert found.told == [("test_it.py::test_it", "AssertionError: not ready in time")]


def test_a_test_that_hangs_is_not_tried_again(tmp_path: Path) -> None:
    found = Outcome(tmp_path, """
@pytest.mark.alone
def test_hangs():
    tried("hangs")
    time.sleep(20)
""", "--timeout", "1")  # fmt: skip
    assert found.status == 1, found.text
    assert found.tries == {"hangs": 1}
    assert found.told == []


def test_the_limit_of_time_holds_for_a_further_try(tmp_path: Path) -> None:
    found = Outcome(tmp_path, """
@pytest.mark.alone
def test_hangs():
    assert tried("hangs") > 1
    time.sleep(20)
""", "--timeout", "2")  # fmt: skip
    assert found.status == 1, found.text
    assert found.tries == {"hangs": 2}
    assert "Timeout (>2.0s)" in found.text


def test_without_the_plugin_every_test_has_one_try(tmp_path: Path) -> None:
    words = ("-p", "no:rerunfailures")
    found = Outcome(tmp_path, '@pytest.mark.alone\ndef test_it(): assert tried("it") > 1\n', *words)
    assert found.status == 1, found.text
    assert found.tries == {"it": 1}
