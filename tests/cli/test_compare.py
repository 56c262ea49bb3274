"""``perflab compare`` and ``perflab claims --verdicts`` as their users type them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from perflab.analysis import noise
from perflab.recordings import RunWriter
from tests.cli.conftest import Tell
from tests.support.planted_trial import Planted
from tests.support.synthetic import ON_AND_OFF, write_run

Type = Callable[..., str]


SLOWER = tuple(Planted(p.levels, p.ratio * 0.7, p.label) for p in ON_AND_OFF)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs a side; those of B are slower."""
    root = tmp_path_factory.mktemp("three")
    options = {"block_noise": 0.02, "blocks": 3, "requests": 60}
    for place in range(3):
        write_run(root / "runs", seed=place, run_id=f"a{place}", **options)
        write_run(root / "runs", seed=9 + place, run_id=f"b{place}", treatments=SLOWER, **options)
    in_the_order(root, "a0", "b0", "b1", "a1", "a2", "b2")
    return root


def in_the_order(root: Path, *names: str) -> None:
    for hour, name in enumerate(names):
        at = f"2026-01-02T{hour:02d}:00:00Z"
        RunWriter.reopen(root / "runs" / name).update(created_at=at, finished_at=at)


@pytest.fixture
def perflab(perflab: Tell) -> Type:
    """Return a function that types a command and returns its output and errors."""

    def typed(data: Path, *words: str, code: int = 0) -> str:
        return "".join(perflab(data / "runs", *words, code=code, COLUMNS="200"))

    return typed


def test_a_regression_over_three_runs_a_side_fails_a_pipeline_and_an_improvement_does_not(
    perflab: Type, three: Path
) -> None:
    a, b = "a0,a1,a2", "b0,b1,b2"
    text = perflab(three, "compare", a, b, "--fail-on", "1.1", code=3)
    assert "worse" in text
    assert "0.7" in text
    assert "3, 3" in text
    assert text.startswith("B against A: worse in ")
    perflab(three, "compare", b, a, "--fail-on", "1.1")
    perflab(three, "compare", a, b, "--fail-on", "2")


@pytest.mark.parametrize("sides", [("a0,a1,a2", "b0,b1,b2"), ("b0,b1,b2", "a0,a1,a2")])
def test_runs_that_lie_apart_in_time_neither_fail_a_pipeline_nor_pass(
    perflab: Type, three: Path, tmp_path: Path, sides: tuple[str, str]
) -> None:
    copied = tmp_path / "three"
    shutil.copytree(three, copied)
    in_the_order(copied, "a0", "a1", "a2", "b0", "b1", "b2")
    text = perflab(copied, "compare", *sides, "--fail-on", "1.1", code=4)
    assert text.startswith("B against A: measured at different times, so nothing is certain")
    assert "--fail-on 1.1 judged nothing: A and B were measured at different times" in text
    assert "A B B A A B" in text
    assert "worse" not in perflab(copied, "compare", *sides)


def test_a_comparison_names_each_run_that_is_doubtful(
    perflab: Type, three: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noise, "share_of_others", lambda _: 0.6)
    text = perflab(three, "compare", "a0", "b0")
    for run_id in ("a0", "b0"):
        assert f"doubtful, {run_id}: others used 60% of the cores meanwhile" in text


def test_one_run_each_fails_no_pipeline(perflab: Type, three: Path) -> None:
    text = perflab(three, "compare", "a0", "b0", "--fail-on", "1.1", code=5)
    assert "differs by trials, one run each" in " ".join(text.split())
    assert "it needs 3 runs on each side; there are 1 and 1" in text
    assert "perflab compare A1,A2,A3 B1,B2,B3 --fail-on 1.1" in text
    # A run cannot be compared with itself.
    text = perflab(three, "compare", "a0", "a0", "--fail-on", "1.1", code=4)
    assert "not comparable" in text
    assert "is given 2 times" in text


def test_a_factor_below_one_is_refused(perflab: Type, three: Path) -> None:
    assert "10% worse" in perflab(three, "compare", "a0", "b0", "--fail-on", "0.9", code=2)


@pytest.mark.promise
def test_a_gate_passes_nothing_that_could_not_be_compared(perflab: Type, three: Path) -> None:
    failed = [(block, 0) for block in range(3)]
    for place in range(3):
        write_run(
            three / "runs", seed=place, run_id=f"c{place}", blocks=3, requests=60, failed=failed
        )
    in_the_order(three, "a0", "c0", "c1", "a1", "a2", "c2")
    text = perflab(three, "compare", "a0,a1,a2", "c0,c1,c2", "--fail-on", "2", code=4)
    assert "not compared: B has no value" in text
    assert "rows could not be compared: --fail-on 2 fails" in text
