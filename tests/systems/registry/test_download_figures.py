"""Figures of downloads show batches and bounds."""

from __future__ import annotations

import pytest

from perflab.recordings import Run
from perflab.systems.registry.views import ladder_table
from tests.figures.shown import check_texts, pictures
from tests.systems.registry.planted_downloads import write_downloads

OF_LADDER = ["download_ladder", "waterfall", "counts_over_time"]


@pytest.fixture(scope="module")
def ladder(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_downloads(tmp_path_factory.mktemp("ladder"))


def test_a_run_of_downloads_has_its_figures_and_no_text_is_cut(ladder: Run) -> None:
    assert [name for name in pictures(ladder) if name in OF_LADDER] == OF_LADDER
    check_texts(ladder, OF_LADDER)


def test_times_of_a_trial_with_time_outs_are_shown_as_bounds(ladder: Run) -> None:
    table = ladder_table(ladder)
    totals = table[(table["panel"] == "total_duration_s") & (table["what"] != "published")]
    bounds = totals[totals["what"] == "at least"]["treatment"]
    assert list(bounds) == ["rung=step_0"]
    assert set(table[table["what"] == "published"]["state"]) == {"other load"}
    points = table[(table["panel"] == "mean_s") & (table["what"] == "trial")]
    means = ladder.valid_trials().set_index("treatment")["mean_ms"].dropna()
    assert sorted(points["value"]) == pytest.approx(sorted(means[points["treatment"]] / 1e3))
