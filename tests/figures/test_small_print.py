"""The small print has the numbers of valid trials, and stays short however they differ."""

from __future__ import annotations

from pathlib import Path

from perflab.figures.origin import n_text
from perflab.recordings import Run
from tests.support.synthetic import variants, write_run


def run_with(folder: Path, lacking: dict[int, int]) -> Run:
    """Write a run of three blocks and seven treatments; some treatments lack trials."""
    failed = {(block, index) for index, blocks in lacking.items() for block in range(blocks)}
    return write_run(
        folder, treatments=variants(7), blocks=3, requests=20, failed=failed, contrasts=[]
    )


def test_a_few_treatments_with_fewer_trials_are_named(tmp_path: Path) -> None:
    text = n_text(run_with(tmp_path, {0: 1, 1: 1, 2: 2}))
    assert text.startswith("n = 3 valid trials per treatment (except 2 of variant 0 of the service")
    assert "1 of variant 2 of the service" in text


def test_many_treatments_with_fewer_trials_are_counted_by_their_number(tmp_path: Path) -> None:
    text = n_text(run_with(tmp_path, {0: 1, 1: 1, 2: 2, 3: 3}))
    assert text == "n = 3 valid trials for 3 treatments, 2 for 2, 1 for 1, 0 for 1"
