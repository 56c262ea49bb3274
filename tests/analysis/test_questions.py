"""A run's questions have one sentence each, beside what the study says."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perflab.analysis.answers import (
    Answer,
    answers_of,
    answers_to_claims,
)
from perflab.analysis.decision import NEVER, decide
from perflab.analysis.effect_words import change, ratio_words
from perflab.analysis.evaluation import Finding, evaluate
from perflab.analysis.results import AgainstStudy
from perflab.analysis.verdict import judge
from perflab.recordings import Response, Run
from perflab.reports.answer_page import answer_page
from perflab.statistics.comparison import Blocks, Effect, effect_from
from tests.support.synthetic import ON_AND_OFF, contrast_of, write_run

ASKS: dict[str, Any] = {"asks": "off faster?", "subject": "requests/s"}


def answers(run: Run) -> list[Answer]:
    """Return the answers to the questions of a run."""
    return answers_of(run, evaluate(run))


def answered(root: Path, changes: dict[str, Any] | None = None) -> Answer:
    """Return the answer of a run in which "off" has 1.6 times the throughput of "on"."""
    contrast = contrast_of(ON_AND_OFF[1], ON_AND_OFF[0], **ASKS, **(changes or {}))
    (answer,) = answers(write_run(root, requests=40, contrasts=[contrast]))
    return answer


def answer_of(finding: Finding) -> Answer:
    """Return the answer to the claim of a finding."""
    (answer,) = answers_to_claims([finding])
    return answer


@pytest.mark.parametrize(
    ("ratio", "text", "study"),
    [
        (1.15, "yes, more than published: +", "+15%"),
        (None, "yes: +", "yes"),
        (9.0, "yes, less than published: +", "9.00x"),
    ],
)
def test_a_shown_effect_is_a_yes_with_its_size_beside_the_studys(
    tmp_path: Path, ratio: float | None, text: str, study: str
) -> None:
    answer = answered(tmp_path, {"published_ratio": ratio})
    assert answer.question == "off faster?"
    assert answer.text.startswith(text)
    assert answer.text.endswith("] requests/s")
    assert (answer.study, answer.blocks) == (study, 0)


def test_what_is_surely_less_than_published_may_be_no_effect_at_all(tmp_path: Path) -> None:
    contrast = contrast_of(ON_AND_OFF[1], ON_AND_OFF[0], **ASKS, published_ratio=9.0)
    run = write_run(tmp_path, requests=40, noise=0.7, contrasts=[contrast])
    (finding,) = evaluate(run)
    assert not finding.verdict.is_shown
    assert finding.verdict.result is AgainstStudy.LESS
    (answer,) = answers(run)
    assert answer.text.startswith("not decided, but less than published: ")
    (told,) = answers_to_claims([finding])
    assert told.text.startswith("less than published: ")


def test_parts_of_a_question_are_told_apart_where_they_differ(tmp_path: Path) -> None:
    parts = [
        contrast_of(
            ON_AND_OFF[1], ON_AND_OFF[0], name=direction, asks="off other?", subject=direction,
            published_ratio=None, published_direction=direction,
        )
        for direction in ("greater", "smaller")
    ]  # fmt: skip
    (answer,) = answers(write_run(tmp_path, requests=40, contrasts=parts))
    assert answer.text.startswith("yes: +")
    assert "] greater (no, the other way: +" in answer.text
    unasked = [part.model_copy(update={"asks": ""}) for part in parts]
    assert answers(write_run(tmp_path, requests=40, contrasts=unasked, seed=2)) == []


def test_claims_on_several_percentiles_share_an_answer_and_no_others_do(tmp_path: Path) -> None:
    ends = ("(p50)", "(p95 of what comes late)", "(p99; the study says 1.05)", "(in cores)")
    parts = [
        contrast_of(
            ON_AND_OFF[1], ON_AND_OFF[0], name=end, claim=f"off is faster {end}",
            response="throughput_rps", published_ratio=None,
        )
        for end in ends
    ]  # fmt: skip
    run = write_run(tmp_path, requests=40, contrasts=parts)
    told = {answer.question: answer.text for answer in answers_to_claims(evaluate(run))}
    assert list(told) == [
        "off is faster", "off is faster (of what comes late)", "off is faster (in cores)"
    ]  # fmt: skip
    both = told["off is faster"]
    assert both.startswith("yes: +")
    assert both.endswith("] p99")
    assert "] p50, +" in both
    assert told["off is faster (in cores)"].endswith("]")


@pytest.mark.parametrize(
    ("published", "result"),
    [(-1000.0, "no effect (within 10% of the published one)"), (-300.0, "less than published")],
)
@pytest.mark.promise
def test_a_difference_that_is_nothing_beside_the_published_one_is_no_effect(
    tmp_path: Path, published: float, result: str
) -> None:
    contrast = contrast_of(
        *ON_AND_OFF, scale="difference", published_ratio=None, published_direction=None,
        published_difference=published,
    )  # fmt: skip
    (finding,) = evaluate(write_run(tmp_path, requests=40, contrasts=[contrast]))
    assert finding.effect is not None
    near_0 = replace(finding.effect, estimate=1.0, low=-40.0, high=45.0)
    assert str(judge(near_0, contrast)) == result
    single = replace(finding.effect, estimate=1.0, low=math.nan, high=math.nan, n=1)
    assert str(judge(single, contrast)) == "not decided"


def test_two_blocks_decide_nothing_however_near_to_0_they_are(tmp_path: Path) -> None:
    contrast = contrast_of(
        *ON_AND_OFF, scale="difference", published_ratio=None, published_direction=None,
        published_difference=-1e6,
    )  # fmt: skip
    run = write_run(tmp_path, blocks=2, requests=40, contrasts=[contrast])
    (answer,) = answers_to_claims(evaluate(run))
    assert answer.text.startswith("not decided: ")
    assert answer.text.endswith(" in 2 blocks")


def test_claims_of_the_same_words_about_other_treatments_stay_apart(tmp_path: Path) -> None:
    parts = [
        contrast_of(*sides, name=words, claim=f"faster (p50; {words})", published_ratio=None)
        for words, sides in (("up", ON_AND_OFF[::-1]), ("down", ON_AND_OFF))
    ]
    run = write_run(tmp_path, requests=40, contrasts=parts)
    told = {answer.question for answer in answers_to_claims(evaluate(run))}
    assert told == {"faster (p50; up)", "faster (p50; down)"}


@pytest.mark.parametrize("scale", ["ratio", "difference"])
def test_a_bound_that_is_not_known_yet_is_told_without_a_number(tmp_path: Path, scale: Any) -> None:
    size = {"published_difference": 30.0} if scale == "difference" else {}
    contrast = contrast_of(*ON_AND_OFF, scale=scale, published_ratio=None, **size)
    (finding,) = evaluate(write_run(tmp_path, requests=40, contrasts=[contrast]))
    assert finding.effect is not None
    effect = replace(finding.effect, bound="at most", high=math.nan)
    answer = answer_of(replace(finding, effect=effect))
    assert "only a bound is known, without a value yet" in answer.text


def test_a_level_is_told_beside_its_limit_in_the_unit_of_both(tmp_path: Path) -> None:
    (finding,) = evaluate(write_run(tmp_path, requests=40))
    assert finding.effect is not None
    effect = replace(finding.effect, estimate=0.086, low=0.031, high=0.2)
    claimed = {"scale": "level", "published_direction": "smaller", "limit": 0.05, "response": "x"}
    contrast = finding.contrast.model_copy(update=claimed)
    of_level = replace(finding, effect=effect, contrast=contrast)
    for name, unit, told in (
        ("a_share", "", "8.60% [3.10, 20.0] (limit: less than 5%)"),
        ("wait_ms", "ms", "0.0860 ms [0.0310, 0.200] (limit: less than 0.05 ms)"),
    ):
        response = Response(name=name, title="a level", unit=unit)
        assert told in answer_of(replace(of_level, response=response)).text


@pytest.mark.promise
def test_blocks_are_proposed_only_where_they_narrow_the_interval(tmp_path: Path) -> None:
    contrast = contrast_of(ON_AND_OFF[1], ON_AND_OFF[0])
    (finding,) = evaluate(write_run(tmp_path, requests=40, noise=0.9, contrasts=[contrast]))
    assert finding.effect is not None
    assert finding.effect.blocks is not None
    assert finding.decision is not None
    assert answer_of(finding).blocks > 6
    for blocks, told in (((7, 9), 9), ((-1, -1), 0)):
        known = replace(finding, decision=replace(finding.decision, blocks=blocks))
        assert answer_of(known).blocks == told
    open_ones = [
        replace(finding, decision=replace(finding.decision, blocks=blocks))
        for blocks in ((35, 40), NEVER)
    ]
    (answer,) = answers_to_claims(open_ones)
    assert answer.blocks == 0, "one of the two stays open"
    # What the client may have added to equal blocks makes them wide, and no block narrows that.
    measured = np.zeros(6)
    blocks_of_client = Blocks(measured - 1, measured, measured)
    assert decide(effect_from(blocks_of_client, "ratio")).blocks == (-1, -1)


def test_each_published_size_stands_with_its_own_words_where_they_differ(tmp_path: Path) -> None:
    parts = [
        contrast_of(ON_AND_OFF[1], ON_AND_OFF[0], name=str(size), published_ratio=size, **ASKS)
        for size in (1.6, 3.0)
    ]
    (answer,) = answers(write_run(tmp_path, requests=40, contrasts=parts))
    assert answer.study == "+60%, 3.00x"
    assert answer.text.startswith("yes, as published: ")
    assert " (yes, less than published: " in answer.text


@pytest.mark.parametrize(
    ("bound", "limit", "words"),
    [
        ("at most", 0.1546, "at least 84% less"),
        ("at least", 1.128, "at least 12% more"),
        ("at most", 1.121, "at most 13% more"),
        ("at least", 0.962, "at most 3.8% less"),
        ("at least", 2.996, "at least 2.99x"),
        ("at most", 2.991, "at most 3.00x"),
    ],
)
@pytest.mark.promise
def test_a_bound_is_rounded_to_the_safe_side(bound: Any, limit: float, words: str) -> None:
    low, high = (0.0, limit) if bound == "at most" else (limit, math.inf)
    effect = Effect(math.nan, low, high, confidence=0.96, n=8, p_value=0.01, bound=bound)
    assert ratio_words(effect) == words


@pytest.mark.parametrize(
    ("ratio", "text"), [(0.003, "-99.7%"), (0.0004, "-99.96%"), (0.0, "-100%"), (0.01, "-99%")]
)
def test_only_nothing_is_100_percent_less(ratio: float, text: str) -> None:
    assert change(ratio) == text


def test_an_interval_that_spans_multiples_is_told_in_times() -> None:
    effect = Effect(0.75, 0.04, 11.58, confidence=0.95, n=8, p_value=0.4)
    assert ratio_words(effect) == "0.750x [0.0400, 11.6]"


def test_the_page_has_a_card_for_each_question_with_links_that_exist(tmp_path: Path) -> None:
    answer = answered(tmp_path / "runs")
    folder, run = tmp_path / "figures" / "lab", tmp_path / "figures" / "a & b"
    run.mkdir(parents=True)
    for name in ("other.svg", "effect.svg", "effect.csv", "a & b.md", "it.ipynb"):
        (run / name).touch()
    card = answer, run / "it.ipynb", ["effect"]
    page = answer_page("What <it> found", [card], folder)
    assert "What &lt;it&gt; found" in page
    assert page.count("<section>") == 1
    assert f'<p class="answer">{answer.text}</p>' in page
    assert '<img src="../a%20%26%20b/effect.svg"' in page
    assert page.count("<img") == 1
    both = answer_page("", [(answer, run / "it.ipynb", ["other", "absent", "effect"])], folder)
    assert re.findall(r"(\w+)\.svg", both) == ["other", "effect"]
    for name in ("it.ipynb", "a%20%26%20b.md", "effect.csv"):
        assert f'href="../a%20%26%20b/{name}"' in page
    (run / "a & b.md").unlink()
    assert "section for a document" not in answer_page(
        "", [(answer, run / "it.ipynb", ["effect"])], folder
    )
