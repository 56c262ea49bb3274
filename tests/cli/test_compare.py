"""``perflab compare`` and ``perflab verdicts`` as their users type them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Tell
from tests.synthetic import ON_AND_OFF, Planted, write_run

Type = Callable[..., str]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    slower = tuple(Planted(p.levels, p.ratio * 0.7, p.label) for p in ON_AND_OFF)
    runs = tmp_path / "runs"
    write_run(runs, seed=1, run_id="first", block_noise=0.02)
    write_run(runs, seed=2, run_id="slower", block_noise=0.02, treatments=slower)
    write_run(runs, seed=3, run_id="other", experiment="sync_vs_async")
    return tmp_path


@pytest.fixture
def perflab(perflab: Tell) -> Type:
    """Type a command; returns all that it says."""

    def typed(data: Path, *words: str, code: int = 0) -> str:
        return "".join(perflab(data / "runs", *words, code=code, COLUMNS="200"))

    return typed


def test_a_regression_fails_a_pipeline_and_an_improvement_does_not(
    perflab: Type, data: Path
) -> None:
    text = perflab(data, "compare", "first", "slower", "--fail-on", "1.1", code=3)
    assert "worse" in text
    assert "0.7" in text
    perflab(data, "compare", "slower", "first", "--fail-on", "1.1")
    perflab(data, "compare", "first", "slower", "--fail-on", "2")


def test_json_says_the_same_to_programs(perflab: Type, data: Path) -> None:
    words = json.loads(perflab(data, "compare", "first", "slower", "--json"))
    assert words["comparable"] is True
    assert {row["verdict"] for row in words["rows"]} == {"worse"}
    assert words["notes"]


def test_runs_that_differ_in_more_than_chance_are_not_compared(perflab: Type, data: Path) -> None:
    text = perflab(data, "compare", "first", "other", code=4)
    assert "not comparable" in text


def test_a_factor_below_one_is_refused(perflab: Type, data: Path) -> None:
    assert "10% worse" in perflab(data, "compare", "first", "slower", "--fail-on", "0.9", code=1)


def test_verdicts_are_of_one_run_of_each_experiment_and_say_which_it_superseded(
    perflab: Type, data: Path
) -> None:
    # Newer than all, and of a single block.
    write_run(data / "runs", seed=4, run_id="tiny", blocks=1)
    text = perflab(data, "verdicts")
    assert "tiny" not in text.partition("nothing is pooled")[0]
    assert "slower: 6 complete blocks" in text
    assert "taken instead of tiny, which has only 1 complete block" in text
    assert "first, which has 6 complete blocks as well, and is older" in text
    assert "sync_vs_async" in text
    shown = perflab(data, "verdicts", "--markdown")
    assert "| experiment |" in shown
    assert "| slower |" in shown
    assert "| first |" not in shown
    assert "docker or process" in perflab(data, "verdicts", "--backend", "podman", code=1)
    assert "no finished runs" in perflab(data, "verdicts", "--backend", "docker")
