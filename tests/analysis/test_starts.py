"""Blocks that share a start of the services count once; an interval of one start says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from perflab.analysis.answers import answers_of
from perflab.analysis.evaluation import Finding, evaluate
from perflab.analysis.findings import sentence
from perflab.analysis.noise import doubt
from perflab.analysis.starts import ONE_START, START, starts_of
from perflab.recordings import Run
from perflab.statistics.block_ends import Ends
from tests.support.simulations.shared_starts import false_alarms
from tests.support.synthetic import write_run


def run_of(root: Path, fresh: int, blocks: int = 8, **words: Any) -> Run:
    return write_run(root, blocks=blocks, requests=20, parameters={"fresh_blocks": fresh}, **words)


def with_starts(run: Run, monkeypatch: pytest.MonkeyPatch, starts: list[int]) -> Run:
    """Return the run with a recorded start of every trial, in the order of time."""
    monkeypatch.setattr(run, "_trials", run.trials().assign(**{START: starts}))
    return run


def finding_of(run: Run) -> Finding:
    (finding,) = evaluate(run)
    return finding


def test_the_log_ratios_of_a_start_are_averaged_and_starts_are_counted(tmp_path: Path) -> None:
    alone, shared = run_of(tmp_path / "1", 1), run_of(tmp_path / "2", 2)
    by_block = np.array(finding_of(alone).effect.by_block)
    effect = finding_of(shared).effect
    assert effect.by_block == pytest.approx(by_block.reshape(4, 2).mean(axis=1))
    assert (effect.n, effect.of_blocks, effect.n_text) == (4, 8, "4 starts of 8 blocks")
    assert finding_of(alone).effect.n_text == "8"
    assert "4 starts of 8 blocks" in sentence(finding_of(shared))
    assert finding_of(shared).blocks == tuple(range(8))


def test_the_last_start_may_have_fewer_blocks_and_a_lost_trial_costs_its_block_alone(
    tmp_path: Path,
) -> None:
    run = run_of(tmp_path, 3, invalid=[(0, 0)])
    assert list(starts_of(run)) == [0, 0, 0, 1, 1, 1, 2, 2]
    finding = finding_of(run)
    assert finding.effect.n_text == "3 starts of 7 blocks"
    assert finding.left_out == 1


def test_recorded_starts_come_before_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # After four trials the run was resumed, and so the services started again.
    starts = [0] * 4 + [4] * 4 + [8] * 8
    assert list(starts_of(with_starts(run_of(tmp_path / "a", 4), monkeypatch, starts))) == [
        0, 0, 1, 1, 2, 2, 2, 2,
    ]  # fmt: skip
    # Services that failed within a block started within it: it belongs to both starts.
    starts = [0] * 5 + [5] * 3 + [8] * 8
    assert list(starts_of(with_starts(run_of(tmp_path / "b", 4), monkeypatch, starts))) == [
        0, 0, 0, 0, 1, 1, 1, 1,
    ]  # fmt: skip
    # A damaged block was repeated last.
    starts = [0] * 2 + [16] * 2 + [0] * 4 + [8] * 8
    assert list(starts_of(with_starts(run_of(tmp_path / "c", 4), monkeypatch, starts))) == [
        1, 0, 1, 1, 2, 2, 2, 2,
    ]  # fmt: skip


def test_fewer_than_three_starts_decide_nothing(tmp_path: Path) -> None:
    finding = finding_of(run_of(tmp_path, 4))
    assert finding.verdict.reason == "2 starts of 8 blocks; a verdict needs at least 3"
    assert finding.decision is None


def test_a_fresh_run_that_would_decide_has_as_many_blocks_for_each_start(tmp_path: Path) -> None:
    run = run_of(tmp_path, 2, noise=0.3)
    decision = finding_of(run).decision
    assert decision.text.endswith("(4 starts of 8 blocks so far)")
    assert all(end % 2 == 0 for end in decision.blocks)
    assert decision.blocks[0] >= 12


@pytest.mark.parametrize("fresh", [0, 8, 20])
def test_an_interval_of_one_start_says_so_beside_the_answer(tmp_path: Path, fresh: int) -> None:
    run = run_of(tmp_path, fresh)
    finding = finding_of(run)
    assert finding.effect.n_text == "8"
    assert finding.scope.endswith(ONE_START)
    assert "the services started once" in doubt(run)
    assert all(answer.doubt == doubt(run) for answer in answers_of(run, evaluate(run)))


@pytest.mark.parametrize("fresh", [1, 2])
def test_nothing_is_said_where_services_started_several_times(tmp_path: Path, fresh: int) -> None:
    run = run_of(tmp_path, fresh)
    assert ONE_START not in finding_of(run).scope
    assert doubt(run) == ""


def test_a_service_that_the_lab_did_not_start_has_one_start(tmp_path: Path) -> None:
    run = run_of(tmp_path, 1)
    first, *others = run.record.treatments
    parts = {"target": "t"}
    treatments = [first.model_copy(update={"parts": parts}), *others]
    target = {"t": {"url": "http://192.0.2.1"}}
    run.record = run.record.model_copy(update={"treatments": treatments, "parts": target})
    assert finding_of(run).scope.endswith(ONE_START)


def test_ends_of_a_start_are_averaged_also_where_they_are_open() -> None:
    low, high = pd.Series([1.0, 3.0, np.nan, 5.0]), pd.Series([2.0, np.inf, np.nan, 6.0])
    starts = pd.Series([0, 0, 1, 2])
    means = Ends(low, high, low, pd.Series([0.2, 0.4, np.nan, 0.1])).mean_by(starts)
    assert means.low.tolist() == pytest.approx([2.0, np.nan, 5.0], nan_ok=True)
    assert means.high.tolist() == pytest.approx([np.inf, np.nan, 6.0], nan_ok=True)
    assert means.step.tolist() == pytest.approx([0.3, np.nan, 0.1], nan_ok=True)


def test_equal_treatments_differ_in_one_of_twenty_runs_whose_blocks_share_starts() -> None:
    random = np.random.default_rng(5)
    assert false_alarms(random, 24, 4, start=0.015, trial=0.02, sets=200).hits <= 16
    # As if every block had a start of its own.
    assert false_alarms(random, 24, 4, 0.015, 0.02, sets=200, as_blocks=True).hits > 20
