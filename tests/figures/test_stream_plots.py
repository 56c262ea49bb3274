"""Figures of streams draw what there is, keep their words inside, and are left out elsewhere."""

from __future__ import annotations

from functools import cache

import pytest

from perflab.figures import EFFECT, PLOTS, STREAM_PLOTS, draw_all, save_all
from perflab.recordings import Contrast, Run, RunWriter, TreatmentRecord
from perflab.systems.chat.figures.delivery_cpu import delivery_cpu
from perflab.systems.chat.figures.delivery_volume import delivery_volume
from perflab.systems.chat.figures.ladder import ladder
from perflab.systems.chat.figures.stream_timeline import stream_timeline
from perflab.systems.chat.figures.volume_users import volume_users
from tests.figures.shown import all_words, cut_off, one_line, overlapping, shown_texts
from tests.systems.chat.synthetic_streams import write_ladder, write_stream_run

once = cache(draw_all)
LOGINS = Contrast(
    name="costly against free logins", claim="logins under way raise latency",
    response="delivery_p90_ms", numerator={"rung": "costly_logins"},
    denominator={"rung": "free_logins"}, published_direction="greater", source="none",
)  # fmt: skip


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_stream_run(tmp_path_factory.mktemp("streams"), contrasts=[LOGINS])


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
    assert set(once(normal)) & set(STREAM_PLOTS) == set(EFFECT)
    assert set(PLOTS) & set(STREAM_PLOTS) == set(EFFECT)


@pytest.mark.parametrize("name", STREAM_PLOTS)
@pytest.mark.parametrize("case", ["streams", "refused"])
def test_no_text_of_a_stream_figure_is_cut_off_or_overlaps(case, name, request) -> None:
    figure = once(request.getfixturevalue(case))[name]
    assert cut_off(figure) == []
    assert overlapping(figure) == []


@pytest.mark.parametrize("name", STREAM_PLOTS)
def test_a_stream_figure_names_its_run_and_has_a_small_table(streams: Run, name: str) -> None:
    words = all_words(once(streams)[name])
    assert streams.run_id in words
    assert 0 < len(STREAM_PLOTS[name].table(streams)) <= 500


def test_the_bands_say_how_far_apart_they_are(streams: Run) -> None:
    assert "60 [" in all_words(once(streams)["login_bands"]).replace("\n", " ")


def test_published_percentiles_stand_beside_the_measured_ones(streams: Run) -> None:
    assert "published" in all_words(once(streams)["ladder"])


def test_a_rung_of_one_trial_has_no_bar_of_a_typical_value(tmp_path) -> None:
    one = write_stream_run(tmp_path, blocks=1)
    dashed = [len(axes.lines) for axes in ladder(one).axes]
    # The target, and the rule between two rows.
    assert dashed == [2, 2, 2]


def test_a_stream_run_without_a_valid_trial_says_so(refused: Run) -> None:
    for name, figure in once(refused).items():
        words = one_line(figure)
        assert "No trial of the run is valid (all superseded)." in words or name == "effect"


def test_volume_against_users_needs_two_numbers_of_users(tmp_path) -> None:
    rows = [{}, {}]
    assert (
        volume_users(write_ladder(tmp_path / "one", {("json", 25): rows, ("best", 25): rows}))
        is None
    )
    assert volume_users(write_ladder(tmp_path / "two", {("json", 25): rows, ("json", 50): rows}))


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
