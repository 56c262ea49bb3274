"""A duel's answer, in words no stronger than what was decided."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from perflab.analysis.between_runs import _row, judged_table
from perflab.analysis.decision import decide
from perflab.analysis.effect_words import effect_text
from perflab.analysis.evaluation import Finding
from perflab.analysis.findings import sentence
from perflab.analysis.gates.thresholds import judged, thresholds_of
from perflab.analysis.verdict import compared, without_effect
from perflab.figures.plots import effect_rows
from perflab.figures.plots.effects import effect_row
from perflab.recordings import Contrast
from perflab.recordings.responses import FAILURES, named
from perflab.reports.duel_answer import answer
from perflab.reports.duel_pairs import pairs_of
from perflab.reports.failures import caveats
from perflab.reports.verdicts import comparison_text
from perflab.statistics.block_ends import Ends
from perflab.statistics.comparison import Effect, bounded, effect_of
from perflab.statistics.shares import difference_of_shares
from perflab.systems.custom.responses import RESPONSES

CPU = "service_cpu_us_per_request"
# Eight blocks around 1: with little noise, and with much.
CALM = 1 + np.array([-4, -3, -2, -1, 1, 2, 3, 4]) / 1000
NOISY = 1 + np.array([-30, -20, -15, -5, 5, 15, 20, 30]) / 100


def finding(response: str, effect: Effect | None, scale: str = "ratio") -> Finding:
    contrast = Contrast.model_validate(
        {
            "name": f"new against old: {response}", "claim": response, "response": response,
            "scale": scale, "numerator": {"variant": "new"}, "denominator": {"variant": "old"},
        }
    )  # fmt: skip
    decision = None
    if effect is not None and scale == "ratio" and effect.n > 2:
        decision = decide(effect)
    declared = named(RESPONSES, response)
    assert declared is not None
    p = effect.p_value if effect else np.nan
    verdict = without_effect(contrast, "no block has both sides")
    if effect is not None:
        verdict = compared(effect, contrast, declared, decision, p)
    return Finding(contrast, declared, effect, verdict, decision, p_adjusted=p)


def ratio(values: np.ndarray) -> Effect:
    return effect_of(pd.Series(np.log(values)))


def at_least(values: np.ndarray) -> Effect:
    logs = pd.Series(np.log(values))
    return bounded(Ends(logs, logs + np.inf))


def answered(findings: list[Finding], *limits: str) -> str:
    thresholds = thresholds_of(limits)
    (pair,) = pairs_of(findings, thresholds, judged(thresholds, findings))
    return answer(pair)


@pytest.mark.parametrize(
    ("time", "cpu", "expected"),
    [
        (
            ratio(1.09 * CALM), ratio(1.1 * CALM),
            "new is 9.0% slower [8.7, 9.3] and uses 10% more CPU [9.7, 10]",
        ),
        (
            ratio(0.8 * CALM), ratio(0.9 * CALM),
            "new answers in 20% less time [20, 20] and uses 10% less CPU [9.7, 10]",
        ),
        (
            ratio(3 * CALM), ratio(2.2 * CALM),
            "new is 3.00 times as slow [2.99, 3.01] and uses 2.20 times as much CPU [2.19, 2.21]",
        ),
        (
            ratio(0.25 * CALM), ratio(1.1 * CALM),
            "new is 4.00 times as fast [3.99, 4.01] and uses 10% more CPU [9.7, 10]",
        ),
        (ratio(CALM), ratio(CALM), "no difference larger than 3% in mean response time or CPU"),
        (
            ratio(NOISY), ratio(1.1 * CALM),
            "new uses 10% more CPU [9.7, 10]; "
            "not decided: mean response time -1.6% [-20, 20]",
        ),
        (
            ratio(NOISY), ratio(CALM),
            "not decided: mean response time -1.6% [-20, 20]; "
            "no difference larger than 3% in CPU",
        ),
        (
            at_least(2.4 * CALM), ratio(CALM),
            "new is at least 2.39 times as slow; no difference larger than 3% in CPU",
        ),
        (
            at_least(0.9 * CALM), None,
            "not decided: mean response time >= 0.897; not compared: CPU",
        ),
        (
            ratio(np.array([1.5, 1.6])), None,
            "not decided: mean response time +55% [2.8, 133] in 2 blocks; not compared: CPU",
        ),
    ],
)  # fmt: skip
def test_the_answer_says_how_much_or_that_it_is_not_decided(
    time: Effect | None, cpu: Effect | None, expected: str
) -> None:
    assert answered([finding("mean_ms", time), finding(CPU, cpu)]) == expected


@pytest.mark.parametrize(
    ("limits", "end"),
    [
        (["mean>1.05"], "[8.7, 9.3]; gate: FAILED mean>1.05"),
        (["mean>1.05", "cpu>1.05"], "; gate: FAILED mean>1.05; not judged cpu>1.05"),
        (["mean>1.09"], ": not decided mean>1.09"),
        (["mean>1.2"], "; gate: passed"),
        ([], "[8.7, 9.3]"),
    ],
)
def test_the_answer_ends_with_the_thresholds_that_were_not_held(
    limits: list[str], end: str
) -> None:
    assert answered([finding("mean_ms", ratio(1.09 * CALM))], *limits).endswith(end)


def test_what_differs_beside_the_mean_is_told_too() -> None:
    of_p99 = finding("p99_ms", ratio(1.3 * CALM))
    shares = effect_of(pd.Series(0.02 * CALM), scale="difference")
    failures = finding("failure_share", shares, "difference")
    assert answered([finding("mean_ms", ratio(CALM)), of_p99, failures]) == (
        "new is 30% slower at p99 [30, 30] and has 2.00 percentage points more failures "
        "[1.99, 2.01]; no difference larger than 3% in mean response time"
    )
    assert "p99" not in answered([finding("mean_ms", ratio(1.3 * CALM)), of_p99])


def test_the_answer_names_the_request_that_differs_and_its_gate() -> None:
    means = {"mean_ms": 1.03, "of_list_mean_ms": 1.0, "of_create_mean_ms": 1.34}
    findings = [finding(name, ratio(factor * CALM)) for name, factor in means.items()]
    findings.append(finding("of_create_p99_ms", ratio(1.4 * CALM)))
    line = answered(findings, "create:mean>1.1", "list:mean>1.1")
    assert "is 34% slower in create [34, 34]" in line
    assert "in list" not in line
    assert "at p99" not in line, "the mean says it already"
    assert "FAILED create:mean>1.1" in line


def of_shares(new: list[int], old: list[int], requests: int = 2_000) -> Effect:
    tables = [pd.DataFrame({"failed": failed, "requests": requests}) for failed in (new, old)]
    return difference_of_shares(*tables)


@pytest.mark.parametrize(
    ("new", "old", "words"),
    [
        ([0] * 8, [0] * 8, "same (no failures on either side)"),
        # 10 and 10 of 16,000 are not known to be within 0.1 points by much, 40 more are not.
        ([1, 2, 1, 1, 2, 1, 1, 1], [2, 1, 1, 1, 1, 2, 1, 1], "same (within 0.1 points)"),
        ([1, 0] * 4, [9, 0] * 4, "not decided"),
        ([8, 9, 7, 8, 9, 10, 8, 9], [0] * 8, "worse"),
    ],
)
def test_failures_of_both_sides_are_told_with_a_margin_of_a_tenth_of_a_point(
    new: list[int], old: list[int], words: str
) -> None:
    assert str(finding("failure_share", of_shares(new, old), "difference").verdict) == words


def test_a_note_says_of_how_many_requests_how_many_failed_and_how_many_may() -> None:
    found = finding("failure_share", of_shares([0] * 8, [1, *[0] * 7]), "difference")
    assert list(caveats(found, {})) == [
        "0 of 16,000 requests of new failed (up to 0.0231% may), 1 of 16,000 requests of old "
        "failed (up to 0.0349% may); exact 95% intervals, as if failures were independent"
    ]
    (text,) = caveats(finding("failure_share", of_shares([2000] * 8, [0] * 8), "difference"), {})
    assert text.startswith("16,000 of 16,000 requests of new failed (at least 99.9% do), 0 of")
    # What none of all requests did, none of a name did.
    none, one = of_shares([0] * 8, [0] * 8), of_shares([1, *[0] * 7], [0] * 8)
    of_name = [finding("of_list_failure_share", shares, "difference") for shares in (none, one)]
    whole = [finding("failure_share", shares, "difference") for shares in (none, one)]
    assert [[*caveats(each, {"failure_share": whole[0]})] for each in of_name] == [[], []]
    # Where some failed, it is said of the others that none did.
    assert [len([*caveats(each, {"failure_share": whole[1]})]) for each in of_name] == [1, 1]
    assert len([*caveats(whole[0], {"failure_share": whole[0]})]) == 1


def test_a_difference_of_failures_is_in_points_wherever_it_stands() -> None:
    found = finding("failure_share", of_shares([8] * 8, [0] * 8), "difference")
    assert effect_text(found).startswith("+0.400 points [0.3")
    assert f"failed {effect_text(found)} (95% interval" in sentence(found)
    row = effect_row(found)
    assert (row["unit"], row["measured"]) == ("points", pytest.approx(0.4))
    assert row["of_blocks"] == " ".join(["0.4"] * 8)
    trials = pd.DataFrame({"failure_share": [0.0, 0.01, 0.02, 0.01], "state": "valid"})
    compared_trials = _row("new", named(RESPONSES, FAILURES), [trials], [trials])
    text = comparison_text(judged_table([compared_trials], lambda _: ""))
    assert "B - A: 0 points [-2.00, 2.00] (no ratio" in text["B / A [95%]"][0]


def test_the_axis_of_an_effect_shows_an_interval_whose_blocks_are_all_alike() -> None:
    assert effect_rows.limits([0.0, 0.0], [-0.05, 0.05], 0.0) == pytest.approx((-0.056, 0.056))
