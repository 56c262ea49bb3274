"""What a comparison can see, through the code that judges runs."""

from __future__ import annotations

import pytest

from benchmarks.what_the_lab_can_resolve import PAGE, SETS, page, told_of_nothing
from perflab.analysis.treatments.resolving import CONDITIONS, as_shares, different, power_table
from perflab.paths import project_root


@pytest.mark.parametrize("condition", CONDITIONS)
def test_equal_treatments_are_called_different_in_no_more_than_one_of_twenty(
    condition: str,
) -> None:
    assert different(8, 0.05, condition=condition, sets=400).interval[0] <= 0.05


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_of_what_is_told_about_one_response_at_most_one_in_twenty_is_nothing(
    correlation: float,
) -> None:
    shares = told_of_nothing(correlation, 0, sets=100).own_share.mean(axis=1)
    # Three standard errors of so few runs above it; uncorrected claims give one in five.
    assert shares.mean() <= 0.05 + 3 * shares.std(ddof=1) / 100**0.5


def test_more_blocks_and_less_noise_find_more() -> None:
    shares = [
        different(blocks, noise, 0.1, sets=100).hits
        for blocks, noise in ((6, 0.2), (6, 0.08), (12, 0.05))
    ]
    assert shares[0] < shares[1] < shares[2]


def test_the_page_is_made_the_same_each_time_and_has_every_number_with_its_interval() -> None:
    small = page((0.05,), sets=10, blocks=(6,))
    assert small == page((0.05,), sets=10, blocks=(6,))
    assert "| drift | " in small
    assert "| 5.0% | 25% | 100% [69%, 100%] |" in small


def test_the_page_in_the_documentation_is_what_this_code_finds() -> None:
    text = (project_root() / PAGE).read_text()
    (row,) = as_shares(power_table([0.05], [0.05], [8], sets=SETS)).to_dict("records")
    line = next(line for line in text.splitlines() if line.startswith("| 5.0% | 5% |"))
    assert row["8 blocks"] in line
