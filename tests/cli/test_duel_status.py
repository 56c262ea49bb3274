"""Every exit status of a duel has one meaning, which help and manual share."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perflab.analysis.gates.thresholds import judged, thresholds_of
from perflab.cli import duel
from perflab.cli.duel_status import GOOD, NOT_JUDGED, UNDECIDED, WORSE, status_of
from perflab.paths import project_root
from perflab.reports.duel_answer import answer
from perflab.reports.duel_pairs import pairs_of
from perflab.statistics.comparison import Effect, effect_of
from tests.cli.conftest import Tell
from tests.reports.test_duels import CALM, finding, ratio

TEN = 1 + np.linspace(-5, 5, 10) / 1000
NO_FAILURES = effect_of(pd.Series([0.0] * 10), scale="difference")


def status(*limits: str, strict: bool = False, **effects: Effect | None) -> int:
    thresholds = thresholds_of(limits)
    findings = [
        finding(name, effect, "difference" if name == "failure_share" else "ratio")
        for name, effect in effects.items()
    ]
    return status_of(pairs_of(findings, thresholds, judged(thresholds, findings)), strict)


@pytest.mark.parametrize(
    ("limits", "strict", "expected"),
    [
        ((), False, 0),
        (("mean>1.2",), True, 0),
        (("mean>1.05",), False, 3),
        # Nobody measured the CPU, yet what is certain comes first.
        (("mean>1.05", "cpu>1.2"), True, 3),
        (("mean>1.2", "cpu>1.2"), True, 4),
        (("mean>1.1",), True, 5),
        (("mean>1.1",), False, 0),
    ],
)
def test_the_status_of_a_measured_duel(
    limits: tuple[str, ...], strict: bool, expected: int
) -> None:
    assert status(*limits, strict=strict, mean_ms=ratio(1.1 * TEN)) == expected


@pytest.mark.parametrize("limits", [(), ("failures>0.01",), ("mean>1.05",)])
def test_where_only_equal_failures_are_known_nothing_was_compared(limits: tuple[str, ...]) -> None:
    """Every request of both sides failed: no share of failures differs."""
    assert status(*limits, mean_ms=None, failure_share=NO_FAILURES) == 4
    assert status(*limits, mean_ms=ratio(TEN), failure_share=NO_FAILURES) == 0


def test_failures_that_differ_are_an_answer() -> None:
    more = effect_of(pd.Series(0.03 * TEN), scale="difference")
    assert status(mean_ms=None, failure_share=more) == 0
    assert status("failures>0.01", mean_ms=None, failure_share=more) == 3


def test_a_duel_of_which_nothing_was_compared_names_the_cause_and_judges_no_threshold() -> None:
    thresholds = thresholds_of(["failures>0.01"])
    findings = [finding("mean_ms", None), finding("failure_share", NO_FAILURES, "difference")]
    (pair,) = pairs_of(findings, thresholds, judged(thresholds, findings))
    cause = findings[0].verdict.reason.partition("; ")[0]
    assert cause
    assert answer(pair) == f"new could not be compared: {cause}; gate: not judged failures>0.01"


def test_the_cause_that_most_responses_have_is_named_and_none_that_the_load_sets() -> None:
    absent = {
        "throughput_rps": "set by the load", "p50_ms": "late", "mean_ms": "1.5% failed; more",
        "p99_ms": "1.5% failed",
    }  # fmt: skip
    findings = [replace(finding(name, None), absent=text) for name, text in absent.items()]
    of_load = findings[0].contrast.model_copy(update={"set_by_load": "an open loop"})
    findings[0] = replace(findings[0], contrast=of_load)
    (pair,) = pairs_of(findings, (), ())
    assert answer(pair) == "new could not be compared: 1.5% failed"


def test_thresholds_that_too_few_blocks_could_not_cross_are_not_judged() -> None:
    limits = ("throughput<0.95", "mean>1.05", "p50>1.05", "p99>1.05", "cpu>1.05", "memory>1.05")
    eight = ratio(1.3 * CALM)
    six = ratio(1.3 * CALM[:6])
    names = ("mean_ms", "p50_ms", "p99_ms", "service_cpu_us_per_request", "service_memory_bytes")
    slower = {**dict.fromkeys(names, eight), "throughput_rps": ratio(CALM / 1.3)}
    assert status(*limits, **slower) == 3
    slower = {**dict.fromkeys(names, six), "throughput_rps": ratio(CALM[:6] / 1.3)}
    assert status(*limits, **slower) == 4


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--fail-on", "p90>1.05"), ("--users", "0"), ("--users", "four"), ("--blocks", "many"),
        ("--duration", "-1"), ("--design", "slice"), ("--variant", "new=gitt:."),
    ],
)  # fmt: skip
def test_an_option_that_cannot_be_read_ends_with_2(
    perflab: Tell, tmp_path: Path, option: str, value: str
) -> None:
    variants = ("--variant", "a=command:cat {port}", "--variant", "b=command:cp {port}")
    assert option in perflab(tmp_path, "duel", *variants, option, value, code=2)[1]


def test_help_and_manual_have_the_same_statuses() -> None:
    told = " ".join(str(duel.command.__doc__).split())
    page = (project_root() / "docs" / "how-to" / "duel.md").read_text()
    rows = dict(re.findall(r"^\| (\d+) \| (.+) \|$", page, re.M))
    assert {*map(int, rows)} == {GOOD, 1, 2, WORSE, NOT_JUDGED, UNDECIDED, 130}
    for number, words in rows.items():
        assert f"{number} {words}" in told
