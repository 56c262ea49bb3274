"""Figures of streams draw what there is, keep their words inside, and are left out elsewhere."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import pytest

from perflab.figures import PLOTS, STREAM_PLOTS, draw_all, save_all
from perflab.figures.plots.delivery_cpu import delivery_cpu
from perflab.figures.plots.delivery_volume import delivery_volume
from perflab.figures.plots.stream_timeline import stream_timeline
from perflab.recordings import Run, RunWriter, TreatmentRecord
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


def with_more(run: Run, count: int) -> Run:
    """Return the run as if it had further treatments, of which no trial is valid."""
    more = [
        TreatmentRecord(name=f"rung=more{number}", levels={"users": "20"}, label=f"more {number}")
        for number in range(count)
    ]
    other = Run(run.path)
    treatments = [*run.record.treatments, *more]
    other.record = run.record.model_copy(update={"treatments": treatments})
    return other


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


@pytest.mark.parametrize("draw", [delivery_cpu, delivery_volume])
def test_three_treatments_have_three_panels_with_numbers_below_and_beside(streams, draw) -> None:
    figure = draw(with_more(streams, 1))
    assert len(figure.axes) == 3
    words = {id(text) for text in shown_texts(figure)}
    for axes, sides in zip(figure.axes, ("y", "x", "xy"), strict=True):
        for axis in (axes.xaxis, axes.yaxis):
            numbers = [tick.label1 for tick in axis.get_major_ticks()]
            assert any(id(number) in words for number in numbers) == (axis.axis_name in sides)
    # The panel without a window says so, and has taken nothing from the others.
    assert "no window of a valid trial" in all_words(figure)
    assert all(len(axes.get_xticks()) for axes in figure.axes)


@pytest.mark.parametrize(
    ("draw", "more", "words"),
    [
        (delivery_cpu, 7, "Shown: the first 4 of 9 treatments."),
        (delivery_volume, 7, "Shown: the first 4 of 9 treatments."),
        (stream_timeline, 1, "Shown: the first 2 of 3 treatments."),
        (delivery_cpu, 2, ""),
    ],
)
def test_treatments_that_are_not_shown_are_counted(streams, draw, more: int, words: str) -> None:
    shown = " ".join(all_words(draw(with_more(streams, more))).split())
    assert words in shown
    assert ("Shown: the first" in shown) == bool(words)
