"""Variants side by side, in sentences that say how much, how sure, and what would decide it."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab import api
from perflab.recordings import Run
from tests.support.synthetic import Planted, contrast_of, write_run

UNPUBLISHED = {"published_ratio": None, "published_direction": None, "source": ""}


def first_sentence(
    root: Path, ratio: float, response: str = "throughput_rps", **planted: object
) -> str:
    """Return the first sentence on a variant whose throughput has this ratio."""
    old, new = Planted({"variant": "old"}), Planted({"variant": "new"}, ratio)
    contrast = contrast_of(
        new, old, name=f"new against old: {response}", response=response, **UNPUBLISHED
    )
    run: Run = write_run(root, treatments=(old, new), contrasts=[contrast], **planted)  # type: ignore[arg-type]
    return next(iter(api.verdict(run)))


@pytest.mark.parametrize(
    ("ratio", "response", "planted", "parts"),
    [
        (
            1 / 1.5, "mean_ms", {"blocks": 8},
            ("new is 1.", "times as slow on the mean as old (8 blocks)."),
        ),
        (
            0.8, "throughput_rps", {"blocks": 10, "noise": 0.01},
            ("new has ", "%] less throughput than old (10 blocks)."),
        ),
        (
            1.0, "throughput_rps", {"blocks": 10, "noise": 0.003},
            ("no difference larger than 3%",),
        ),
        (
            1.0, "throughput_rps", {"blocks": 8, "noise": 0.1},
            ("undecided", "a fresh run of"),
        ),
    ],
)  # fmt: skip
def test_a_difference_is_told_with_its_interval_or_what_would_decide_it(
    tmp_path: Path, ratio: float, response: str, planted: dict[str, float], parts: tuple[str, ...]
) -> None:
    line = first_sentence(tmp_path, ratio, response, **planted)
    assert all(part in line for part in parts)


def test_what_has_no_valid_trials_is_not_compared_and_says_why(tmp_path: Path) -> None:
    line = first_sentence(tmp_path, 1.2, blocks=3, invalid=[(0, 1), (1, 1), (2, 1)])
    assert line.startswith("new against old: not compared.")
    assert "the client used 97% of its cores" in line


@pytest.mark.parametrize("ratio", [1.0, 1.6])
def test_a_published_claim_is_judged_as_ever(tmp_path: Path, ratio: float) -> None:
    old, new = Planted({"variant": "old"}), Planted({"variant": "new"}, ratio)
    run = write_run(tmp_path, treatments=(old, new), contrasts=[contrast_of(new, old)])
    assert "side by side" not in str(api.verdict(run))
    assert "published" in str(api.verdict(run)).lower()
