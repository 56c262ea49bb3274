"""A run's questions have one sentence each, beside what the study says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perflab.analysis.answers import Answer, answers_of, change, ratio_words
from perflab.reports.answer_page import answer_page
from perflab.statistics.comparison import Effect
from tests.support.synthetic import ON_AND_OFF, contrast_of, write_run

ASKS: dict[str, Any] = {"asks": "off faster?", "subject": "requests/s"}


def answered(root: Path, changes: dict[str, Any] | None = None, **words: Any) -> Answer:
    """Return the answer of a run in which "off" has 1.6 times the throughput of "on"."""
    contrast = contrast_of(ON_AND_OFF[1], ON_AND_OFF[0], **ASKS, **(changes or {}))
    (answer,) = answers_of(write_run(root, requests=40, contrasts=[contrast], **words))
    return answer


@pytest.mark.parametrize(
    ("ratio", "study"),
    [
        (1.6, "+60%, as here"),
        (3.0, "3.00x, more than here"),
        (1.15, "+15%, less than here"),
        (None, "yes"),
    ],
)
def test_a_shown_effect_is_a_yes_with_its_size_beside_the_studys(
    tmp_path: Path, ratio: float | None, study: str
) -> None:
    answer = answered(tmp_path, {"published_ratio": ratio})
    assert answer.question == "off faster?"
    assert answer.text.startswith("yes: +")
    assert answer.text.endswith("] requests/s")
    assert (answer.study, answer.blocks) == (study, 0)


def test_an_effect_the_other_way_is_a_no_beside_the_studys_size_alone(tmp_path: Path) -> None:
    changes = {"published_ratio": 0.5, "published_direction": "smaller"}
    answer = answered(tmp_path, changes)
    assert answer.text.startswith("no, the other way: +")
    assert answer.study == "-50%"


def test_what_is_not_decided_says_so_with_the_blocks_that_would_decide_it(tmp_path: Path) -> None:
    answer = answered(tmp_path, noise=0.9)
    assert answer.text.startswith("not decided: ")
    assert answer.text.endswith(" in 6 blocks")
    assert answer.blocks > 6


def test_what_was_not_measured_says_why(tmp_path: Path) -> None:
    answer = answered(tmp_path, failed=[(block, 0) for block in range(6)])
    assert answer.text.startswith("not measured: 6 of 12 trials may not be used")


def test_parts_of_a_question_are_told_apart_where_they_differ(tmp_path: Path) -> None:
    parts = [
        contrast_of(
            ON_AND_OFF[1], ON_AND_OFF[0], name=direction, asks="off other?", subject=direction,
            published_ratio=None, published_direction=direction,
        )
        for direction in ("greater", "smaller")
    ]  # fmt: skip
    (answer,) = answers_of(write_run(tmp_path, requests=40, contrasts=parts))
    assert answer.text.startswith("yes: +")
    assert "] greater; no, the other way: +" in answer.text
    unasked = [part.model_copy(update={"asks": ""}) for part in parts]
    assert answers_of(write_run(tmp_path, requests=40, contrasts=unasked, seed=2)) == []


def test_each_published_size_stands_with_its_own_words_where_they_differ(tmp_path: Path) -> None:
    parts = [
        contrast_of(ON_AND_OFF[1], ON_AND_OFF[0], name=str(size), published_ratio=size, **ASKS)
        for size in (1.6, 3.0)
    ]
    (answer,) = answers_of(write_run(tmp_path, requests=40, contrasts=parts))
    assert answer.study == "+60% (as here), 3.00x (more than here)"


@pytest.mark.parametrize(
    ("ratio", "words"), [(1.153, "+15%"), (1.0312, "+3.1%"), (0.5, "-50%"), (13.24, "13.2x")]
)
def test_small_changes_are_in_percent_and_large_ones_in_times(ratio: float, words: str) -> None:
    assert change(ratio) == words


@pytest.mark.parametrize(
    ("ends", "words"),
    [((1.15, 1.05, 1.214), "+15% [5.0, 21]"), ((13.24, 12.1, 14.2), "13.2x [12.1, 14.2]")],
)
def test_a_ratio_stands_with_its_interval(ends: tuple[float, float, float], words: str) -> None:
    assert ratio_words(Effect(*ends, confidence=0.96, n=8, p_value=0.01, method="")) == words


def test_the_page_has_a_card_for_each_question_with_links_that_exist(tmp_path: Path) -> None:
    answer = answered(tmp_path / "runs")
    folder, run = tmp_path / "figures" / "lab", tmp_path / "figures" / "a & b"
    run.mkdir(parents=True)
    for name in ("other.svg", "effect.svg", "effect.csv", "a & b.md", "it.ipynb"):
        (run / name).touch()
    page = answer_page("What <it> found", [(answer, run / "it.ipynb")], folder)
    assert "What &lt;it&gt; found" in page
    assert page.count("<section>") == 1
    assert f'<p class="answer">{answer.text}</p>' in page
    assert '<img src="../a%20%26%20b/effect.svg"' in page
    for name in ("it.ipynb", "a%20%26%20b.md", "effect.csv"):
        assert f'href="../a%20%26%20b/{name}"' in page
    (run / "a & b.md").unlink()
    assert "section for a document" not in answer_page("", [(answer, run / "it.ipynb")], folder)
