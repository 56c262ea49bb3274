"""Figures of streams show the planted values."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab.analysis.evaluation import evaluate
from perflab.recordings import Run
from perflab.systems.llm.views import stream_times_table
from tests.figures.shown import check_texts, pictures
from tests.systems.llm.planted_streams import CPU_US, FIRST_MS, GAP_MS, write_streams

FIGURES = ["stream_times", "stream_costs", "users_by_limit"]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    sets = ("kinds", "unpaced")
    return {name: write_streams(tmp_path_factory.mktemp(name), (name,)) for name in sets}


@pytest.mark.slow
def test_a_run_of_streams_has_its_figures_and_no_text_is_cut(tmp_path: Path) -> None:
    run = write_streams(tmp_path / "all", ("unpaced", "limits"))
    assert [figure for figure in pictures(run) if figure in FIGURES] == FIGURES
    check_texts(run, FIGURES)


def test_first_chunks_count_from_the_planned_instant_and_gaps_from_chunk_to_chunk(
    planted: dict[str, Run],
) -> None:
    table = stream_times_table(planted["kinds"])
    middle = table[(table["curve"] == "all trials") & (table["share"] == 0.5)]
    median_ms = middle.set_index(["family", "version", "what"])["ms"]
    for version in FIRST_MS:
        assert median_ms["stream", version, "first chunk"] == pytest.approx(FIRST_MS[version])
        assert median_ms["stream", version, "gap"] == pytest.approx(GAP_MS[version])
    # A batch has no chunks; kinds stand in the order of the record.
    assert list(table["family"].unique()) == ["stream", "tools"]
    # The end marker is no chunk, and ends no gap.
    gaps = table[(table["what"] == "gap") & (table["version"] == "old")]
    assert gaps["ms"].min() == pytest.approx(GAP_MS["old"])


def test_the_factor_by_which_the_unpaced_comparison_misleads_is_that_of_both_ratios(
    planted: dict[str, Run],
) -> None:
    effects = {
        finding.contrast.name: finding.effect.estimate
        for finding in evaluate(planted["unpaced"])
        if finding.effect
    }
    true_ratio = CPU_US["new"] / CPU_US["old"]
    assert effects["paced_new against paced_old, proxy CPU"] == pytest.approx(true_ratio)
    assert effects["unpaced_new against unpaced_old, proxy CPU"] == pytest.approx(1)
    assert effects["pacing x version, proxy CPU"] == pytest.approx(1 / true_ratio)
    rates = "unpaced_new against unpaced_old, answers per second"
    assert effects[rates] == pytest.approx(1 / true_ratio)
