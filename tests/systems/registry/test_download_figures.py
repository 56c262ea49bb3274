"""Figures of downloads show batches and bounds."""

from __future__ import annotations

import pytest

from perflab.recordings import Run
from perflab.systems.registry.views import ladder_table
from perflab.systems.registry.waterfall import waterfall_table
from tests.figures.shown import all_words, check_texts, pictures
from tests.systems.registry.planted_downloads import write_downloads

OF_LADDER = ["download_ladder", "waterfall", "counts_over_time"]


@pytest.fixture(scope="module")
def ladder(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_downloads(tmp_path_factory.mktemp("ladder"))


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_downloads(tmp_path_factory.mktemp("inside"), ("inside",))


def test_a_run_of_downloads_has_its_figures_and_no_text_is_cut(ladder: Run) -> None:
    assert [name for name in pictures(ladder) if name in OF_LADDER] == OF_LADDER
    check_texts(ladder, OF_LADDER)


def test_a_waterfall_has_every_download_and_says_which_gave_up(ladder: Run) -> None:
    table = waterfall_table(ladder)
    assert (table.groupby("treatment").size() == 20).all()
    of_rung = table[table["treatment"] == "rung=step_0"]
    assert (of_rung["outcome"] == "whole").sum() == 9
    assert of_rung[of_rung["outcome"] == "timeout"]["first_s"].isna().all()
    ends_s = table[table["treatment"] == "rung=step_1"]["end_s"].round().value_counts()
    assert ends_s.max() == 6


def test_times_of_a_trial_with_time_outs_are_shown_as_bounds(ladder: Run) -> None:
    table = ladder_table(ladder)
    totals = table[(table["panel"] == "total_duration_s") & (table["what"] != "published")]
    bounds = totals[totals["what"] == "at least"]["treatment"]
    assert list(bounds) == ["rung=step_0"]
    assert set(table[table["what"] == "published"]["state"]) == {"other load"}
    points = table[(table["panel"] == "mean_s") & (table["what"] == "trial")]
    means = ladder.valid_trials().set_index("treatment")["mean_ms"].dropna()
    assert sorted(points["value"]) == pytest.approx(sorted(means[points["treatment"]] / 1e3))


def test_a_load_from_inside_stands_beside_the_labs_own_and_is_called_as_told(inside: Run) -> None:
    table = ladder_table(inside)
    succeeded = table[(table["panel"] == "succeeded") & (table["what"] != "published")]
    what_of = succeeded.set_index("treatment")["what"]
    for rung in ("step_0", "plain_def", "step_1", "step_3"):
        assert (what_of[f"rung={rung}"], what_of[f"rung={rung}_inside"]) == ("trial", "as told")
    total = table[table["panel"] == "total_duration_s"].set_index("treatment")["what"]
    assert "as told, at least" in set(total["rung=step_0_inside"])
    drawn = pictures(inside)
    assert [name for name in drawn if name in OF_LADDER] == OF_LADDER
    check_texts(inside, OF_LADDER)
    for name in ("download_ladder", "waterfall"):
        assert "the service's own generator" in " ".join(all_words(drawn[name]).split())
