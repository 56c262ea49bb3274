"""The table of promises fits the code, and breaking them touches nothing but a copy."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from perflab.paths import project_root

PLACE = project_root() / "scripts" / "mutations.py"
spec = importlib.util.spec_from_file_location("mutations", PLACE)
assert spec is not None
assert spec.loader is not None
mutations = importlib.util.module_from_spec(spec)
sys.modules["mutations"] = mutations
spec.loader.exec_module(mutations)
TABLE = mutations.promises()


@pytest.mark.parametrize("promise", TABLE, ids=lambda each: each.name)
def test_every_change_can_still_be_made_and_its_tests_are_there(promise) -> None:  # type: ignore[no-untyped-def]
    assert mutations.broken_source(promise) != (project_root() / promise.path).read_text()
    for test in promise.tests:
        path, _, name = test.partition("::")
        source = (project_root() / path).read_text()
        assert f"def {name.partition('[')[0]}(" in source or not name


SOURCE = """
class A:
    def first(self):
        x = 1
        return f(x,
                 2)

    def second(self):
        x = 1
"""


def planted(where: str, old: str, new: str = "pass"):  # type: ignore[no-untyped-def]
    return mutations.Promise("a", "a", where, old, new, ())


def test_a_change_is_made_in_its_definition_alone_however_lines_are_broken() -> None:
    change = planted("a.py::A.first", "return f(x, 2)", "return 3")
    assert "        x = 1\n        return 3\n" in mutations.changed(SOURCE, change)
    change = planted("a.py::A.second", "x = 1", "x = 2")
    assert mutations.changed(SOURCE, change).count("x = 1") == 1


@pytest.mark.parametrize(
    ("where", "old", "new", "words"),
    [
        ("a.py::A.third", "x = 1", "", "a.py has no A.third"),
        ("a.py::measure", "x = 1", "", "there is one in perflab/trials/trial.py"),
        ("a.py::A.first", "y = 1", "", "holds this 0 times: y = 1"),
        ("a.py", "x = 1", "", "holds this 2 times: x = 1"),
        ("a.py::A.first", "return", "return (", "gives no Python"),
    ],
)
def test_a_change_that_cannot_be_made_says_why(where: str, old: str, new: str, words: str) -> None:
    with pytest.raises(mutations.DoesNotApply) as caught:
        mutations.changed(SOURCE, planted(where, old, new))
    assert words in str(caught.value)


def test_what_passes_when_nothing_is_broken_has_time_for_the_tests_of_many_promises() -> None:
    fast = next(each for each in TABLE if not each.slow)
    outcomes = [mutations.Outcome(fast, mutations.CAUGHT, fast.tests[0])]
    (control,) = mutations.unbroken(outcomes, parts=1)
    assert control.within_s >= 5 * fast.within_s


def copies() -> set[Path]:
    return set(Path(os.environ.get("TMPDIR", "/tmp")).glob("perflab-mutation-*"))


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_when_it_is_killed_nothing_is_left(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    script = subprocess.Popen(
        [sys.executable, str(PLACE), "--only", "capabilities dropped"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(copies)
    script.send_signal(number)
    script.wait(timeout=60)
    wait_until(lambda: not copies())
