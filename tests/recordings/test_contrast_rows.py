"""A row of a table becomes a contrast: sides, published size, the claim's words and its source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from perflab import systems as package
from perflab.errors import RecordingError
from perflab.recordings import claims, published_value, stated
from perflab.recordings.contrast_rows import ContrastRow

STUDY = "registry"
TOTAL = ("results table", "total_duration")
NUMBERS = [
    published_value(STUDY, TOTAL[0], scenario, TOTAL[1]) for scenario in ("optimised", "baseline")
]
SIZED = {
    "published": "results table / optimised / total_duration",
    "published_over": "results table / baseline / total_duration",
}


def row(**cells: Any) -> ContrastRow:
    needed = {"name": "a", "numerator": "fast", "denominator": "slow", "response": "mean_ms"}
    return ContrastRow.model_validate({**needed, "claim": "it is faster", **cells})


def test_a_side_is_a_rung_or_levels_by_name() -> None:
    contrast = row(numerator="write=no driver=asyncpg", over="fast", under="slow").contrast(STUDY)
    assert contrast.numerator == {"write": "no", "driver": "asyncpg"}
    assert contrast.denominator == {"rung": "slow"}
    assert contrast.interaction is not None
    assert contrast.interaction.numerator == {"rung": "fast"}


@pytest.mark.promise
def test_published_rows_are_the_size_at_the_published_load_and_at_no_other() -> None:
    ratio = row(**SIZED, published_bound="at most", source="s", published_direction="smaller")
    at_load = ratio.contrast(STUDY)
    assert at_load.published_ratio == NUMBERS[0] / NUMBERS[1]
    assert at_load.published_bound == "at most"
    elsewhere = ratio.contrast(STUDY, sized=False)
    assert (elsewhere.published_ratio, elsewhere.published_bound) == (None, "")
    assert elsewhere.published_direction == "smaller"
    difference = row(**SIZED, scale="difference", source="s").contrast(STUDY)
    assert difference.published_difference == NUMBERS[0] - NUMBERS[1]
    alone = row(published=SIZED["published"], source="s").contrast(STUDY)
    assert alone.published_ratio == NUMBERS[0]


def test_names_in_braces_stand_for_words_and_for_the_published_numbers() -> None:
    texts = {"name": "{few} files", "source": "{above:g} against {below:g}", "claim": "few: {few}"}
    contrast = row(**SIZED, **texts, numerator="files_{few}").contrast(STUDY, few=96)
    assert (contrast.name, contrast.claim) == ("96 files", "few: 96")
    assert contrast.numerator == {"rung": "files_96"}
    assert contrast.source == f"{NUMBERS[0]:g} against {NUMBERS[1]:g}"


def test_a_claim_stands_in_the_studys_table_alone_and_is_the_source() -> None:
    (claim,) = (claim for claim in claims(STUDY) if claim.claim_id == "claim 2")
    contrast = row(claim_id="claim 2", claim="{stated} (here)").contrast(STUDY)
    assert contrast.claim == f"{claim.claim.removesuffix('.')} (here)"
    assert contrast.source == "registry study, claim 2"
    with pytest.raises(RecordingError, match=r"no claim 'claim 22' of registry.*'claim 2'"):
        row(claim_id="claim 22").contrast(STUDY)


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"claim": "{stated} (here)"}, "needs a claim_id"),
        ({"published_over": SIZED["published"]}, "needs the row published"),
        ({"published": "results table / optimised"}, "is no PLACE / SCENARIO / MEASURE"),
    ],
)
def test_a_row_that_refers_to_nothing_is_refused(cells: dict[str, str], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        row(**cells)


def test_the_sentence_of_a_claim_stands_in_the_studies_table_and_nowhere_else() -> None:
    folder = Path(package.__file__).parent
    files = [*folder.rglob("*.py"), *folder.rglob("*.csv")]
    texts = {path.name: " ".join(path.read_text().split()) for path in files}
    twice = [
        (claim.clause, name)
        for claim in claims()
        for name, text in texts.items()
        if claim.clause in text
    ]
    assert twice == []


def test_a_claim_within_a_sentence_begins_small_unless_its_first_word_is_a_name() -> None:
    assert stated("registry", "claim 1").startswith("a plain def holds up")
    assert stated("registry", "claim 4") == "only the network limits"
    assert stated("inference", "claim 4").startswith("I/O bounds the system")
