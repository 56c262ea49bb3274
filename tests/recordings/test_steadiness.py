"""Loads that drift the same way in every block refuse their treatment, unlike a disturbed machine.

The rates are those of docs/steadiness.md.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perflab.analysis import validity_table
from perflab.analysis.evaluation import evaluate
from perflab.analysis.verdict import Outcome
from perflab.paths import project_root
from perflab.recordings import Run
from perflab.recordings.steadiness import over_blocks
from perflab.reports.section import section_text
from tests.support.simulations.steadiness import BLOCKS, CALM, DRIFTS, STIRRED, refused
from tests.support.synthetic import write_run
from tests.trials.fakes import Told
from tests.trials.test_trial import drifting

UP = [0.12, 0.15, 0.18, 0.11, 0.16, 0.14]
BOTH_WAYS = [0.2, -0.2, 0.15, -0.15, 0.1, -0.1]
WHY = (
    "the loads were not steady: over 6 blocks response times changed by +15% [+13%, +18%] from "
    "begin to end"
)


@pytest.fixture(scope="module")
def drifted(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of two treatments, of which the second drifts in every block."""
    trends = {0: BOTH_WAYS, 1: UP}
    return write_run(tmp_path_factory.mktemp("drifted"), requests=40, trends=trends)


def codes(run: Run, treatment: int) -> list[list[str]]:
    trials = run.trials()
    trials = trials[trials["treatment"] == run.record.treatments[treatment].name]
    return [[reason.code for reason in reasons] for reasons in trials["reasons"]]


def test_loads_that_move_the_same_way_refuse_the_treatment_with_all_its_trials(
    drifted: Run,
) -> None:
    assert codes(drifted, 1) == [["treatment.trend"]] * 6
    assert set(drifted.valid_trials()["treatment"]) == {drifted.record.treatments[0].name}


def test_its_comparison_has_no_number_and_no_verdict(drifted: Run) -> None:
    (finding,) = evaluate(drifted)
    assert (finding.effect, finding.verdict.outcome) == (None, Outcome.UNDECIDED)
    assert finding.valid == 6
    assert WHY in finding.absent


def test_the_reason_is_told_wherever_the_claim_is(drifted: Run) -> None:
    # The reason stands twice beside the claim, and beside each refused trial.
    assert section_text(drifted).count(WHY) == 2 + 6
    assert WHY in validity_table(drifted)["reason"].tolist()[1]


def test_a_run_whose_loads_drift_says_so_in_its_record(tmp_path: Path) -> None:
    told = Told(tmp_path, blocks=3, facts=drifting(0.2))
    run = told.go()
    names = [treatment.name for treatment in run.record.treatments]
    written = json.loads((run.path / "run.json").read_text())["warnings"]
    texts = [remark["text"] for remark in written if remark["code"] == "treatment.trend"]
    # The texts stand in the order of the trials.
    assert sorted(text.partition(" is compared with nothing: ")[0] for text in texts) == names
    assert all("a longer warm-up" in text and "more blocks" in text for text in texts)
    assert not len(run.valid_trials())


@pytest.mark.parametrize(
    ("trends", "refuses"),
    [
        (UP, True),
        ([-trend for trend in UP], True),
        (BOTH_WAYS, False),
        # The mean is steady, but the interval is too wide.
        ([0.9, -0.9, 0.9, -0.9], True),
        ([0.09] * 4, False),
        ([0.10] * 4, True),
    ],
)
def test_a_treatment_is_refused_by_its_mean_trend_or_where_nobody_can_tell(
    trends: list[float], refuses: bool
) -> None:
    assert over_blocks(trends).refused == refuses


def test_one_gross_load_does_not_refuse_the_others() -> None:
    assert not over_blocks([1.6, *BOTH_WAYS, 0.0]).refused
    assert over_blocks([1.6] * 5 + [0.0] * 3).refused


def test_below_three_blocks_each_load_is_judged_by_itself(tmp_path: Path) -> None:
    run = Told(tmp_path, blocks=2, facts=drifting(0.2)).go()
    assert set(run.trials()["state"]) == {"invalid"}
    assert codes(run, 0) == [["load.trend"]] * 2
    assert not any(
        item.code == "load.trend" for items in run.trials()["warnings"] for item in items
    )


def test_trials_of_which_something_else_is_known_to_be_wrong_count_for_nothing(
    tmp_path: Path,
) -> None:
    trends = {1: [0.4, 0.4, 0.01, -0.01, 0.02, 0.0]}
    run = write_run(tmp_path, requests=40, trends=trends, invalid=[(0, 1), (1, 1)])
    assert codes(run, 1) == [["generator.cpu"]] * 2 + [[]] * 4


@pytest.mark.parametrize("blocks", BLOCKS)
def test_steady_treatments_pass_and_planted_drifts_do_not(blocks: int) -> None:
    rates = {drift: refused(blocks, drift, STIRRED, sets=200).hits / 200 for drift in DRIFTS}
    assert rates[0.0] <= 0.08
    assert rates[0.05] <= 0.20
    assert rates[0.20] >= 0.93
    assert rates[0.40] == 1
    assert refused(blocks, 0.0, CALM, sets=200).hits == 0


def test_the_page_in_the_documentation_is_what_this_code_finds() -> None:
    text = (project_root() / "docs" / "steadiness.md").read_text()
    rate = refused(8, 0.05)
    (line,) = [line for line in text.splitlines() if line.startswith("| 5% | ")][1:2]
    assert f"{rate.hits / rate.n:.0%} {rate.bounds()}" in line
