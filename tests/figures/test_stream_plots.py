"""Figures of streams draw what there is, keep their words inside, and are left out elsewhere."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import pytest

from perflab.figures import PLOTS, STREAM_PLOTS, draw_all, save_all
from perflab.recordings import Run, RunWriter
from tests.figures.test_plots import all_words, shown_texts
from tests.synthetic_streams import write_stream_run

once = cache(draw_all)


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_stream_run(tmp_path_factory.mktemp("streams"))


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of streams without a valid trial."""
    run = write_stream_run(tmp_path_factory.mktemp("refused"), blocks=1)
    RunWriter.reopen(run.path).supersede(run.trials()["trial_id"])
    return Run(run.path)


def test_a_run_of_streams_has_the_figures_of_streams_only(streams: Run, normal: Run) -> None:
    assert set(once(streams)) == set(STREAM_PLOTS)
    assert not set(once(normal)) & set(STREAM_PLOTS)
    assert not set(PLOTS) & set(STREAM_PLOTS)


@pytest.mark.parametrize("name", STREAM_PLOTS)
@pytest.mark.parametrize("case", ["streams", "refused"])
def test_no_text_of_a_stream_figure_is_cut_off_or_overlaps(case, name, request) -> None:
    figure = once(request.getfixturevalue(case))[name]
    boxes = [(t.get_text(), t.get_window_extent()) for t in shown_texts(figure)]
    width, height = figure.bbox.width, figure.bbox.height
    assert [
        words
        for words, box in boxes
        if box.x0 < -0.5 or box.y0 < -0.5 or box.x1 > width + 0.5 or box.y1 > height + 0.5
    ] == []
    assert [
        (a, b)
        for (a, one), (b, two) in combinations(boxes, 2)
        if one.x0 + 1 < two.x1 - 1
        and two.x0 + 1 < one.x1 - 1
        and one.y0 + 1 < two.y1 - 1
        and two.y0 + 1 < one.y1 - 1
    ] == []


@pytest.mark.parametrize("name", STREAM_PLOTS)
def test_a_stream_figure_names_its_run_and_has_a_small_table(streams: Run, name: str) -> None:
    words = all_words(once(streams)[name])
    assert streams.run_id in words
    assert 0 < len(STREAM_PLOTS[name].table(streams)) <= 500


def test_the_bands_say_how_far_apart_they_are(streams: Run) -> None:
    assert "60 [" in all_words(once(streams)["login_bands"]).replace("\n", " ")


def test_published_percentiles_stand_beside_the_measured_ones(streams: Run) -> None:
    assert "published" in all_words(once(streams)["ladder"])


def test_saving_gives_each_figure_with_its_table(streams: Run, tmp_path) -> None:
    assert len(save_all(streams, tmp_path)) == 3 * len(STREAM_PLOTS)
