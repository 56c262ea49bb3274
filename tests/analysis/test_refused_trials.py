"""Where refused trials may change an answer, the one with them stands beside it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
import pytest

from perflab.analysis.answers import answers_to_claims
from perflab.analysis.evaluation import Finding, evaluate
from perflab.analysis.findings import sentence
from perflab.analysis.gates.thresholds import judged, thresholds_of
from perflab.analysis.results import Gate
from perflab.recordings import Reason, Run
from perflab.reports.duel_answer import answer
from perflab.reports.duel_notes import notes
from perflab.reports.duel_pairs import pairs_of
from perflab.reports.duels import variant_sentences
from perflab.reports.findings import readable_findings
from tests.support.planted_trial import Planted
from tests.support.synthetic import UNPUBLISHED, contrast_of, write_run

BLOCKS = 8
OLD, NEW = Planted({"variant": "old"}), Planted({"variant": "new"})
BUSY = Reason(code="generator.cpu", side="client", text="the client used 97% of its cores")
TOLD = "refused: 2 trials of new, none of old; with their values "


def refusing(
    root: Path, new: Collection[int], old: Collection[int] = (), *, with_values: bool = True
) -> Run:
    """Return a run of equal variants; trials of these blocks are refused, at +40%."""
    contrast = contrast_of(NEW, OLD, **UNPUBLISHED, response="mean_ms")
    run = write_run(
        root, treatments=(OLD, NEW), blocks=BLOCKS, noise=0.0, requests=60, contrasts=[contrast]
    )
    trials = run.trials()
    random = np.random.default_rng(2)
    trials["mean_ms"] = 50 * np.exp(0.01 * random.standard_normal(len(trials)))
    for name, blocks in (("new", new), ("old", old)):
        rows = (trials["factor_variant"] == name) & trials["block"].isin(list(blocks))
        trials.loc[rows, "state"] = "invalid"
        trials.loc[rows, "mean_ms"] *= 1.4 if with_values else np.nan
        for row in trials.index[rows]:
            trials.at[row, "reasons"] = [BUSY]
    run.trials = lambda: trials  # type: ignore[method-assign]
    return run


def only(run: Run) -> Finding:
    (finding,) = evaluate(run)
    return finding


def test_the_refused_slow_trials_of_one_side_are_told_with_the_answer_that_includes_them(
    tmp_path: Path,
) -> None:
    run = refusing(tmp_path, new=(2, 5))
    finding = only(run)
    assert finding.effect is not None
    assert finding.effect.n == BLOCKS - 2
    assert finding.refused is not None
    with_them = finding.refused.effect
    assert with_them is not None
    assert with_them.n == BLOCKS
    # Two blocks of eight at +40% move the interval's upper end far beyond that of the others.
    assert with_them.high > 1.15 > finding.effect.high
    for told in (
        sentence(finding),
        answers_to_claims([finding])[0].text,
        readable_findings(evaluate(run))["left out"][0],
        variant_sentences(run, evaluate(run))[1],
    ):
        assert TOLD in told
        assert "with their values" in told


def test_where_refused_trials_have_no_value_this_is_said(tmp_path: Path) -> None:
    finding = only(refusing(tmp_path, new=(2, 5), with_values=False))
    assert finding.refused is not None
    assert finding.refused.effect is None
    assert "without a value of this" in sentence(finding)


@pytest.mark.parametrize("blocks", [(), (3,), (3, 6)])
def test_as_many_refused_trials_on_both_sides_are_not_told(
    tmp_path: Path, blocks: tuple[int, ...]
) -> None:
    run = refusing(tmp_path, new=blocks, old=blocks)
    assert only(run).refused is None
    assert "refused" not in " ".join(variant_sentences(run, evaluate(run))[:2])


def test_as_many_refused_trials_are_told_where_those_of_one_side_were_slow(tmp_path: Path) -> None:
    run = refusing(tmp_path, new=(2, 5), old=(1, 6))
    trials = run.trials()
    of_old = (trials["factor_variant"] == "old") & (trials["state"] == "invalid")
    trials.loc[of_old, "mean_ms"] /= 1.4
    finding = only(run)
    assert finding.refused is not None
    assert finding.effect is not None
    assert finding.refused.effect is not None
    assert finding.refused.effect.high > 1.15 > finding.effect.high
    assert "refused: 2 trials of new, 2 trials of old; with their values" in sentence(finding)


def test_where_one_block_counts_the_values_of_all_stand_beside_it(tmp_path: Path) -> None:
    finding = only(refusing(tmp_path, new=range(1, BLOCKS), old=range(1, BLOCKS)))
    assert finding.effect is not None
    assert finding.effect.n == 1
    assert finding.refused is not None


@pytest.mark.promise
def test_a_gate_is_not_passed_where_the_values_of_refused_trials_may_cross_its_bound(
    tmp_path: Path,
) -> None:
    run = refusing(tmp_path, new=(2, 5))
    thresholds = thresholds_of(["mean>1.1", "mean>2"])
    findings = evaluate(run)
    (pair,) = pairs_of(findings, thresholds, judged(thresholds, findings))
    assert [*pair.gate.values()] == [Gate.NOT_DECIDED, Gate.PASSED]
    assert "gate: not decided mean>1.1" in answer(pair)
    assert any("mean>1.1: not decided, because refused" in line for line in notes(run, [pair]))
    # Slow trials of the old side speak for the new one.
    (other,) = evaluate(refusing(tmp_path / "old", new=(), old=(2, 5)))
    assert [one.judged(other) for one in thresholds] == [Gate.PASSED, Gate.PASSED]
