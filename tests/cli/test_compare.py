"""``perflab compare`` and ``perflab verdicts`` as their users type them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.synthetic import ON_AND_OFF, Planted, write_run

PERFLAB = str(Path(sys.executable).with_name("perflab"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    slower = tuple(Planted(p.levels, p.ratio * 0.7, p.label) for p in ON_AND_OFF)
    runs = tmp_path / "runs"
    write_run(runs, seed=1, run_id="first", block_noise=0.02)
    write_run(runs, seed=2, run_id="slower", block_noise=0.02, treatments=slower)
    write_run(runs, seed=3, run_id="other", experiment="sync_vs_async")
    return tmp_path


def perflab(data: Path, *words: str, code: int = 0) -> str:
    done = subprocess.run(
        [PERFLAB, *words], capture_output=True, text=True, timeout=100,
        env={**os.environ, "PERFLAB_RUNS": str(data / "runs"), "COLUMNS": "200"},
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_regression_fails_a_pipeline_and_an_improvement_does_not(data: Path) -> None:
    text = perflab(data, "compare", "first", "slower", "--fail-on", "1.1", code=3)
    assert "worse" in text
    assert "0.7" in text
    perflab(data, "compare", "slower", "first", "--fail-on", "1.1")
    perflab(data, "compare", "first", "slower", "--fail-on", "2")


def test_json_says_the_same_to_programs(data: Path) -> None:
    words = json.loads(perflab(data, "compare", "first", "slower", "--json"))
    assert words["comparable"] is True
    assert {row["verdict"] for row in words["rows"]} == {"worse"}
    assert words["notes"]


def test_runs_that_differ_in_more_than_chance_are_not_compared(data: Path) -> None:
    text = perflab(data, "compare", "first", "other", code=4)
    assert "not comparable" in text


def test_a_factor_below_one_is_refused(data: Path) -> None:
    assert "10% worse" in perflab(data, "compare", "first", "slower", "--fail-on", "0.9", code=1)


def test_verdicts_show_the_latest_run_of_each_experiment(data: Path) -> None:
    text = perflab(data, "verdicts")
    assert "slower" in text
    assert "first" not in text
    assert "sync_vs_async" in text
    assert "| experiment |" in perflab(data, "verdicts", "--markdown")
    assert "docker or process" in perflab(data, "verdicts", "--backend", "podman", code=1)
    assert "no finished runs" in perflab(data, "verdicts", "--backend", "docker")
