"""False alarms and power of comparisons, through the code that judges runs."""

from __future__ import annotations

import pytest

from perflab.analysis.decision import CALM, CONDITIONS, as_shares, different, power_table
from perflab.paths import project_root
from tests.support.simulations.several_responses import told_of_nothing


@pytest.mark.parametrize(
    ("blocks", "condition"), [*((8, condition) for condition in CONDITIONS), (3, CALM)]
)
def test_equal_treatments_are_called_different_in_no_more_than_one_of_twenty(
    blocks: int, condition: str
) -> None:
    assert different(blocks, 0.05, condition=condition, sets=400).interval[0] <= 0.05


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_of_the_differences_shown_for_one_response_at_most_one_in_twenty_is_false(
    correlation: float,
) -> None:
    shares = told_of_nothing(correlation, 0, sets=100).own_share.mean(axis=1)
    # Three standard errors of so few runs above 0.05; uncorrected claims give one in five.
    assert shares.mean() <= 0.05 + 3 * shares.std(ddof=1) / 100**0.5


def test_the_page_in_the_documentation_is_what_this_code_finds() -> None:
    text = (project_root() / "docs" / "what-the-lab-can-resolve.md").read_text()
    (row,) = as_shares(power_table([0.05], [0.05], [8])).to_dict("records")
    line = next(line for line in text.splitlines() if line.startswith("| 5.0% | 5% |"))
    assert row["8 blocks"] in line
