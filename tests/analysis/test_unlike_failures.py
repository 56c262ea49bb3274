"""No side is called faster for the way in which its requests fail."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perflab.analysis.doubts.failed_requests import refuse_unlike
from perflab.analysis.evaluation import Finding, evaluate
from perflab.analysis.results import DIFFERENT, Compared
from perflab.errors import AnalysisError
from perflab.recordings import Remark, Run
from perflab.recordings.responses import FAILURES, SOME_FAILED
from perflab.reports.duel_answer import answer
from perflab.reports.duel_pairs import pairs_of
from tests.support.planted_trial import Planted
from tests.support.simulations.failing import closed_loop, columns_of
from tests.support.synthetic import UNPUBLISHED, contrast_of, write_run

BLOCKS = 8
OLD, NEW = Planted({"variant": "old"}), Planted({"variant": "new"})
COMPARED = ("mean_ms", "p50_ms", "p99_ms", "throughput_rps")
ENDS = ("lower_end", "at_most", "at_least")


def failing(root: Path, new: tuple[float, float, float], old: tuple[float, float, float]) -> Run:
    """Return a run whose sides have a share of failures, their time and that of others (ms)."""
    contrasts = [
        contrast_of(NEW, OLD, **UNPUBLISHED, name=name, response=name) for name in COMPARED
    ]
    run = write_run(
        root, treatments=(OLD, NEW), blocks=BLOCKS, noise=0.0, requests=60, contrasts=contrasts
    )
    trials, random = run.trials(), np.random.default_rng(6)
    rows = []
    for number, name in enumerate(trials["factor_variant"]):
        facts = new if name == "new" else old
        rows.append(columns_of(closed_loop(root / str(number), random, *facts)))
    columns = pd.DataFrame(rows)
    trials = trials.drop(columns=columns.columns, errors="ignore").join(columns)
    remark = Remark(code=SOME_FAILED, text="some failed")
    trials["warnings"] = [[remark] if row["errors"] else [] for row in rows]
    run.trials = lambda: trials  # type: ignore[method-assign]
    return run


def findings_of(run: Run) -> dict[str, Finding]:
    return {finding.contrast.response: finding for finding in evaluate(run)}


@pytest.mark.parametrize("quick", ["old", "new"])
def test_failures_at_once_against_late_ones_make_no_side_faster_or_slower(
    tmp_path: Path, quick: str
) -> None:
    at_once, late = (0.04, 0.1, 2.0), (0.04, 200.0, 2.0)
    sides = (at_once, late) if quick == "new" else (late, at_once)
    run = failing(tmp_path, *sides)
    results = {name: finding.verdict.result for name, finding in findings_of(run).items()}
    assert not {*DIFFERENT} & {*results.values()}, results
    # The successes alone would have shown another throughput.
    trials = run.trials()
    ends = [name for name in trials if any(end in name for end in ENDS)]
    alone = trials.drop(columns=ends)
    run = Run(run.path)
    run.trials = lambda: alone  # type: ignore[method-assign]
    effect = findings_of(run)["throughput_rps"].effect
    assert effect is not None
    assert (effect.low > 1) if quick == "new" else (effect.high < 1)


def test_a_slower_side_is_found_although_as_many_requests_fail_on_both(tmp_path: Path) -> None:
    run = failing(tmp_path, (0.03, 2.0, 2.4), (0.03, 2.0, 2.0))
    findings = findings_of(run)
    assert findings["p50_ms"].verdict.result is Compared.WORSE
    (pair,) = pairs_of(findings.values(), (), ())
    assert answer(pair).startswith("new is 20% slower at p50 [")
    assert "not decided: mean" not in answer(pair)


@pytest.mark.parametrize(("new", "compared"), [(0.012, True), (0.02, False)])
def test_times_of_sides_that_fail_a_point_apart_are_not_compared(
    tmp_path: Path, new: float, compared: bool
) -> None:
    findings = findings_of(failing(tmp_path, (new, 2.0, 2.0), (0.005, 2.0, 2.0)))
    assert (findings["p50_ms"].effect is not None) == compared
    if not compared:
        reason = findings["p50_ms"].verdict.reason
        assert reason.startswith("2.0% of the requests of new and 0.5% of the requests of old")
        assert not any(finding.effect for finding in findings.values())


@pytest.mark.promise
def test_times_of_a_request_that_is_named_like_a_failure_are_not_compared_either(
    tmp_path: Path,
) -> None:
    run = failing(tmp_path, (0.02, 2.0, 2.0), (0.005, 2.0, 2.0))
    contrast = contrast_of(NEW, OLD, **UNPUBLISHED, response="of_login_success_mean_ms")
    with pytest.raises(AnalysisError, match="only failures are compared"):
        refuse_unlike(run, contrast, run.trials())
    refuse_unlike(run, contrast.model_copy(update={"response": FAILURES}), run.trials())
