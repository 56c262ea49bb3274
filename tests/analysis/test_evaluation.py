"""A run's contrasts are measured on valid trials, and the words agree with the numbers."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from perflab import api
from perflab.analysis.decision import decide
from perflab.analysis.doubts.block_trend import block_trend
from perflab.analysis.evaluation import evaluate
from perflab.analysis.findings import sentence
from perflab.analysis.results import Compared
from perflab.analysis.verdict import judge
from perflab.recordings import ContrastPair, Run, RunWriter
from perflab.reports.exporting import Destination, export_runs
from tests.support.planted_trial import Planted
from tests.support.synthetic import ON_AND_OFF, contrast_of, variants, write_run


def test_who_answers_a_run_evaluates_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(tmp_path, requests=40)
    evaluated: list[int] = []
    monkeypatch.setattr(
        "perflab.analysis.evaluation.block_trend", lambda _: evaluated.append(1) or block_trend(run)
    )
    monkeypatch.setenv("PERFLAB_FIGURES", str(tmp_path / "figures"))

    def export(run: Run) -> None:
        export_runs([run], Destination(tmp_path / "docs"), ["md"])

    for answer in (api.answers, api.findings, api.save, export):
        evaluated.clear()
        answer(run)
        assert evaluated == [1]


@pytest.mark.promise
def test_pairing_removes_what_a_block_has_in_common(tmp_path) -> None:
    (finding,) = evaluate(write_run(tmp_path, block_noise=1.0, noise=0.01))
    assert finding.effect is not None
    assert finding.effect.high / finding.effect.low < 1.15


@pytest.mark.promise
def test_invalid_failed_and_superseded_trials_do_not_count(tmp_path) -> None:
    run = write_run(tmp_path, blocks=8, invalid=[(0, 0)], failed=[(1, 1)])
    RunWriter.reopen(run.path).supersede(["b002-p00-a0"])
    (finding,) = evaluate(Run(run.path))
    assert finding.effect is not None
    assert finding.effect.n == 5
    assert finding.left_out == 3
    assert "3 blocks left out" in sentence(finding)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"response": "p12_ms"}, "p12_ms"),
        ({"numerator": {"synchronous_commit": "local"}}, "local"),
        ({"numerator": {"colour": "red"}}, "colour=red"),
    ],
)
def test_a_contrast_of_a_missing_response_or_treatment_says_so(tmp_path, changes, words) -> None:
    contrast = contrast_of(ON_AND_OFF[1], ON_AND_OFF[0], **changes)
    (finding,) = evaluate(write_run(tmp_path, contrasts=[contrast]))
    assert str(finding.verdict) == "not measured"
    assert words in finding.verdict.reason


def test_a_difference_is_measured_in_the_unit_of_its_response(tmp_path) -> None:
    contrast = contrast_of(
        *ON_AND_OFF[::-1],
        scale="difference",
        published_ratio=None,
        published_difference=200.0,
    )
    run = write_run(tmp_path, contrasts=[contrast], failed=[(0, 0)])
    (finding,) = evaluate(run)
    rates = run.valid_trials().pivot(index="block", columns="treatment", values="throughput_rps")
    differences = rates[ON_AND_OFF[1].name] - rates[ON_AND_OFF[0].name]
    assert finding.effect is not None
    assert finding.effect.by_block == pytest.approx(differences.dropna().tolist())
    assert finding.effect.low < finding.effect.estimate < finding.effect.high
    assert (finding.left_out, finding.decision) == (1, None)


FOUR = tuple(
    Planted({"runtime": runtime, "write": write}, ratio)
    for runtime, write, ratio in [
        ("slow", "yes", 1.0),
        ("slow", "no", 1.5),
        ("fast", "yes", 1.2),
        ("fast", "no", 3.6),
    ]
)


def test_an_interaction_is_measured_within_blocks(tmp_path) -> None:
    contrast = contrast_of(
        FOUR[3],
        FOUR[1],
        published_ratio=None,
        interaction=ContrastPair(numerator=FOUR[2].levels, denominator=FOUR[0].levels),
    )
    (finding,) = evaluate(write_run(tmp_path, treatments=FOUR, contrasts=[contrast], requests=100))
    assert finding.effect is not None
    assert finding.effect.low < (3.6 / 1.5) / 1.2 < finding.effect.high
    assert str(finding.verdict) == "in the direction published"


@pytest.mark.promise
def test_p_values_are_corrected_over_the_family(tmp_path) -> None:
    treatments = variants(4)
    contrasts = [contrast_of(treatment, treatments[0]) for treatment in treatments[1:]]
    contrasts.append(
        contrast_of(treatments[0], treatments[0], published_ratio=None, published_direction="none")
    )
    findings = evaluate(write_run(tmp_path, treatments=treatments, contrasts=contrasts))
    assert findings[0].effect is not None
    assert findings[0].p_adjusted == pytest.approx(findings[0].effect.p_value * 4 / 3)
    assert str(findings[3].verdict) == "as published"


@pytest.mark.promise
def test_one_effect_among_many_claims_is_not_shown_by_its_own_p_value_alone(tmp_path) -> None:
    treatments = (*variants(7, step=1.0), Planted({"variant": "fast"}, 1.3))
    claims = [
        contrast_of(
            treatment, treatments[0], published_ratio=None, published_direction="greater"
        )
        for treatment in (treatments[7], *treatments[1:7])
    ]  # fmt: skip
    run = write_run(tmp_path, treatments=treatments, contrasts=claims, requests=20)
    among = evaluate(run)[0]
    assert among.p_adjusted > 0.05 >= among.effect.p_value
    assert str(judge(among.effect, claims[0])) == "in the direction published"
    assert str(among.verdict) == "not decided"
    assert decide(among.effect).result is Compared.MORE
    assert among.decision.result is Compared.NOT_DECIDED
    # Six blocks cannot reach the p-value that it needs.
    assert among.decision.blocks[0] >= 8
    text = sentence(among)
    assert text.count("excludes 1 (no effect), but p, adjusted for 7 claims, is") == 1
    assert "excludes 1 (no difference), but" not in text
    assert "a fresh run of" in text


@pytest.mark.promise
def test_what_the_load_sets_is_measured_and_counted_with_no_claim(tmp_path) -> None:
    treatments = variants(3)
    contrasts = [contrast_of(treatments[n], treatments[0]) for n in (1, 2)]
    contrasts[1] = contrasts[1].model_copy(update={"set_by_load": "the load was made from it"})
    tested, set_by_load = evaluate(
        write_run(tmp_path, treatments=treatments, contrasts=contrasts, requests=100)
    )
    assert (tested.claims, tested.p_adjusted) == (1, tested.effect.p_value)
    assert str(set_by_load.verdict) == "not testable here (set by the load)"
    assert set_by_load.effect.low < 1.15**2 < set_by_load.effect.high
    assert math.isnan(set_by_load.p_adjusted)
    assert set_by_load.decision is None
    assert "the load was made from it" in sentence(set_by_load)
