"""How a run whose number of blocks is not fixed is judged, and what it waits for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perflab.analysis.evaluation import evaluate
from perflab.analysis.findings import can_be_decided, undecided_contrasts
from perflab.analysis.results import Compared
from perflab.recordings import Run, RunWriter
from perflab.statistics.interim_analysis import LooksTaken, interval, planned
from tests.support.planted_trial import Planted
from tests.support.synthetic import ON_AND_OFF, UNPUBLISHED, contrast_of, write_run

RULE = planned(8, 20)


def run_after(root: Path, done: int, **planted: Any) -> Run:
    """Return a run after so many of the blocks that its rule allows."""
    run = write_run(root, blocks=RULE.most_blocks, measured=done, requests=60, **planted)
    RunWriter.reopen(run.path).update(until_decided=RULE)
    return Run(run.path)


def against(ratio: float = 1.0, **changes: Any) -> dict[str, Any]:
    """Return two treatments with this ratio, and one contrast."""
    one = Planted({"synchronous_commit": "on"})
    other = Planted({"synchronous_commit": "off"}, ratio=ratio)
    return {"treatments": (one, other), "contrasts": [contrast_of(other, one, **changes)]}


def test_intervals_and_p_are_those_of_all_looks_and_the_verdict_says_so(tmp_path: Path) -> None:
    (finding,) = evaluate(run_after(tmp_path, 14))
    (usual,) = evaluate(write_run(tmp_path / "usual", blocks=14, requests=60))
    assert finding.effect is not None
    assert usual.effect is not None
    x = np.array(finding.effect.by_block)
    assert len(x) == 14
    expected = interval(x, 0.95, LooksTaken(RULE, (8, 14)))
    assert expected is not None
    assert (finding.effect.low, finding.effect.high) == pytest.approx(tuple(np.exp(expected[:2])))
    assert "looks after 8, 14 and 20 blocks, 14 of at most 20 counted" in finding.verdict.reason
    assert "looks after" not in usual.verdict.reason


def test_a_block_that_was_broken_off_is_no_block_yet(tmp_path: Path) -> None:
    run = run_after(tmp_path, 14)
    writer = RunWriter.reopen(run.path)
    writer.supersede([str(run.trials()["trial_id"].iloc[-1])])
    (finding,) = evaluate(Run(run.path))
    assert finding.effect is not None
    assert finding.effect.n == 8
    assert (finding.blocks, finding.left_out) == (tuple(range(8)), 0)


def test_the_decision_is_of_all_looks_too(tmp_path: Path) -> None:
    """One look at these blocks would call them the same; several planned looks must not."""
    logs = [-0.055, -0.01, -0.005, 0.0, 0.005, 0.01, 0.02, 0.055]
    results = (("usual", None, Compared.SAME), ("looks", RULE, Compared.NOT_DECIDED))
    for place, rule, result in results:
        run = run_after(tmp_path / place, len(logs), **against(1.0, **UNPUBLISHED))
        RunWriter.reopen(run.path).update(until_decided=rule)
        run = Run(run.path)
        trials = run.trials()
        (numerator,) = run.record.selected(run.record.contrasts[0].numerator)
        by_block = trials["block"].map(dict(enumerate(logs)))
        logs_of_trials = np.where(trials["treatment"] == numerator, by_block, 0.0)
        run._trials = trials.assign(throughput_rps=100 * np.exp(logs_of_trials))
        (finding,) = evaluate(run)
        assert finding.decision is not None
        assert finding.decision.result is result


def test_a_claim_is_waited_for_until_direction_and_size_are_decided(tmp_path: Path) -> None:
    calm = run_after(tmp_path / "calm", 8, noise=0.01)
    assert undecided_contrasts(evaluate(calm)) == ()
    (name,) = (contrast.name for contrast in calm.record.contrasts)
    few = run_after(tmp_path / "few", 7, noise=0.01)
    assert undecided_contrasts(evaluate(few)) == (name,)
    noisy = run_after(tmp_path / "noisy", 8, noise=0.3)
    assert undecided_contrasts(evaluate(noisy)) == (name,)


def test_an_unpublished_ratio_is_waited_for_until_its_sides_differ_or_are_the_same(
    tmp_path: Path,
) -> None:
    for place, ratio, noise, is_open in (
        ("different", 1.5, 0.02, False),
        ("same", 1.0, 0.004, False),
        ("neither", 1.03, 0.05, True),
    ):
        run = run_after(tmp_path / place, 10, noise=noise, **against(ratio, **UNPUBLISHED))
        assert bool(undecided_contrasts(evaluate(run))) is is_open, place


@pytest.mark.parametrize(
    ("changes", "can"),
    [
        ({}, True),
        (UNPUBLISHED, True),
        ({"not_testable": "one core"}, False),
        ({"set_by_load": "the load sets it"}, False),
        ({**UNPUBLISHED, "scale": "difference"}, False),
        ({**UNPUBLISHED, "scale": "difference", "published_direction": "greater", "source": "s"},
         True),
    ],
)  # fmt: skip
def test_a_run_does_not_wait_for_what_measuring_cannot_decide(
    changes: dict[str, Any], can: bool
) -> None:
    assert can_be_decided(contrast_of(ON_AND_OFF[1], ON_AND_OFF[0], **changes)) is can
