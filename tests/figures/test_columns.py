"""Figures for a column are laid out anew: nothing in them is too small, cut off or covered."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from perflab import systems
from perflab.figures import THROUGHPUT, draw_view, provenance, save_view
from perflab.figures.canvas import LabFigure
from perflab.figures.crowded import break_words, leave_out_numbers
from perflab.figures.export import CAPTION
from perflab.figures.inks import dress
from perflab.figures.sheets import COLUMN, PAGE
from perflab.figures.style import Style
from perflab.figures.theme import DARK
from perflab.recordings import Run
from perflab.reports.pictures import declared_views, views_of
from perflab.reports.verifying import verify
from tests.figures.shown import cut_off, one_line, overlapping, picture, shown_texts
from tests.figures.studies import VIEWS
from tests.synthetic import Planted, contrast_of, profiled_run, write_run
from tests.systems.chat.synthetic_streams import write_ladder, write_stream_run
from tests.systems.chat.test_burst_model import ladder as write_bursts
from tests.systems.chat.test_login_costs import run_of as write_logins
from tests.systems.chat.test_targets_met import write_targets
from tests.systems.inference.test_flush_map import write_map
from tests.systems.inference.test_shares import write as write_commits
from tests.systems.llm.planted_streams import write_streams
from tests.systems.metricstream.planted_connections import write_posts
from tests.systems.metricstream.test_client_or_server import planted as both_clients
from tests.systems.metricstream.test_client_or_server import run_of as write_clients
from tests.systems.registry.planted_downloads import write_downloads

SMALLEST_PT = 6.0
IN_A_COLUMN = Style(width="column")


def of_rungs(folder: Path) -> Run:
    """Write two configurations with several numbers of users."""
    late = {"delivery_p90_ms": 400.0}
    planted = {(kind, users): [{}, late, {}] for kind in ("json", "best") for users in (25, 425)}
    return write_ladder(folder, planted)


PLANTED: dict[str, Callable[[Path], Run]] = {
    "streams": lambda folder: write_stream_run(folder, growth=0.002),
    "rungs": of_rungs,
    "bursts": lambda folder: write_bursts(folder, {"a": 1.2, "b": 1.2, "spread": 1.2, "c": 2.4}),
    "targets": write_targets,
    "logins": lambda folder: write_logins(folder, (11, 8, 9)),
    "map": write_map,
    "commits": write_commits,
    **{
        name: lambda folder, name=name: write_streams(folder, (name,))
        for name in ("kinds", "unpaced", "limits", "capacity")
    },
    **{
        name: lambda folder, name=name: write_posts(folder, (name,), 4)
        for name in ("phases", "parts")
    },
    "users": lambda folder: write_posts(folder, ("clients",), 4),
    "naive": lambda folder: write_clients(folder, both_clients(0.5, 1.0)),
    "downloads": write_downloads,
    "threads": lambda folder: write_downloads(folder, ("threads", "clients")),
    "inside": lambda folder: write_downloads(folder, ("inside",)),
    "profiled": lambda folder: profiled_run(folder, {"a": {"f (x/y.py)": 3}, "b": {"g (z.py)": 5}}),
}  # fmt: skip


@pytest.fixture(scope="module")
def run_called(tmp_path_factory, request) -> Callable[[str], Run]:
    """Return a recorded or planted run by its name, each written once."""

    @cache
    def written(name: str) -> Run:
        if name in VIEWS:
            run: Run = request.getfixturevalue(name)
            return run
        return PLANTED[name](tmp_path_factory.mktemp("planted"))

    return written


def faults(figure: LabFigure) -> list[str]:
    """Return what of a figure cannot be read in a column."""
    small = [text for text in shown_texts(figure) if text.get_fontsize() < SMALLEST_PT]
    return [
        *([] if figure.get_figwidth() == pytest.approx(3.4) else ["it is not 3.4 inches wide"]),
        *(f"too small: {text.get_text()!r}" for text in small),
        *(f"cut off: {words!r}" for words in cut_off(figure)),
        *(f"over each other: {one!r}, {other!r}" for one, other in overlapping(figure)),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*VIEWS, *PLANTED])
def test_every_word_of_every_view_can_be_read_in_a_column(name: str, run_called) -> None:
    run = run_called(name)
    found = {view.name: faults(picture(view, run, COLUMN)) for view in views_of(run)}
    assert found
    assert {name: each for name, each in found.items() if each} == {}


@pytest.mark.slow
def test_every_view_of_every_system_is_among_those(run_called) -> None:
    looked_at = {view.name for name in [*VIEWS, *PLANTED] for view in views_of(run_called(name))}
    declared = {name for system in systems.systems() for name in declared_views(system)}
    assert declared - looked_at == set()


def test_words_of_the_commonest_figures_can_be_read_in_a_column(normal) -> None:
    for view in views_of(normal):
        assert faults(picture(view, normal, COLUMN)) == [], view.name


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 12])
def test_long_names_of_many_treatments_are_whole_above_their_rows(tmp_path, count) -> None:
    treatments = [
        Planted({"variant": str(n)}, 1.0, f"{'a long name of a treatment, ' * 3}variant = {n}")
        for n in range(count)
    ]
    claims = [contrast_of(each, treatments[0]) for each in treatments[1:]]
    run = write_run(tmp_path, treatments=treatments, blocks=1, requests=5, contrasts=claims)
    for view in views_of(run):
        figure = picture(view, run, COLUMN)
        assert faults(figure) == [], view.name
        if view is THROUGHPUT:
            assert all(each.label in one_line(figure) for each in treatments)


def test_the_numbers_of_a_row_stand_in_both_widths(normal) -> None:
    page, column = (one_line(picture(THROUGHPUT, normal, each)) for each in (PAGE, COLUMN))
    told = [part for part in column.split() if part.startswith("[")]
    assert len(told) == 2
    assert all(part in page for part in told)


@pytest.mark.slow
def test_a_column_is_dark_without_a_word_moved(normal) -> None:
    for view in views_of(normal):
        figure = draw_view(view, normal, COLUMN)
        assert isinstance(figure, LabFigure)
        before = [text.get_window_extent().bounds for text in shown_texts(figure)]
        dress(figure, DARK)
        assert [text.get_window_extent().bounds for text in shown_texts(figure)] == before


def test_a_column_lies_beside_the_page_with_the_same_table(normal, tmp_path) -> None:
    page = save_view(THROUGHPUT, normal, tmp_path)
    before = page[-1].read_bytes()
    column = save_view(THROUGHPUT, normal, tmp_path, style=IN_A_COLUMN)
    dark = save_view(THROUGHPUT, normal, tmp_path, style=Style("dark", width="column"))
    assert [path.name for path in column] == [
        "throughput-column.svg", "throughput-column.png", "throughput.csv",
    ]  # fmt: skip
    assert dark[0].name == "throughput-column-dark.svg"
    assert column[-1].read_bytes() == before
    assert 'width="244.8pt"' in column[0].read_text()
    with Image.open(column[1]) as picture:
        assert picture.width == 3.4 * 400
        assert picture.info["dpi"] == pytest.approx((400, 400), rel=1e-3)


def test_a_column_is_redrawn_for_its_width_when_it_is_verified(
    normal, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("PERFLAB_RUNS", str(normal.path.parent))
    own = next(view for view in views_of(normal) if view.name == "throughput")
    save_view(own, normal, tmp_path, ["svg", "png", "pdf"], IN_A_COLUMN)
    assert {(each.state, each.told) for each in verify([tmp_path])} == {("as drawn", "")}


def test_what_a_column_has_no_room_to_say_is_in_its_caption(normal, tmp_path) -> None:
    paths = save_view(THROUGHPUT, normal, tmp_path, ["svg", "pdf"], IN_A_COLUMN)
    how = "Every point is one trial"
    assert how not in one_line(picture(THROUGHPUT, normal, COLUMN))
    assert all(how in provenance(path)[CAPTION] for path in paths[:2])
    on_a_page = save_view(THROUGHPUT, normal, tmp_path, ["svg"])
    assert CAPTION not in provenance(on_a_page[0])


def test_numbers_that_would_touch_are_left_out_and_0_is_kept() -> None:
    figure = Figure(figsize=(1.0, 1.0), dpi=100)
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.set_xlim(-20_000, 90_000)
    axes.set_xticks(range(-20_000, 90_000, 10_000))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    leave_out_numbers(figure)
    assert overlapping(figure) == []
    kept = list(axes.get_xticks())
    assert 0 in kept
    assert 2 <= len(kept) < 11


def test_words_longer_than_their_panel_are_broken() -> None:
    figure = Figure(figsize=(2.0, 0.8), dpi=100)
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    words = "throughput, successful responses per second"
    axes.set(xlabel=words, ylabel=words, title=words)
    break_words(figure)
    for text in (axes.xaxis.label, axes.yaxis.label, axes.title):
        assert "\n" in text.get_text()
        # Between words, and never in one.
        assert " ".join(text.get_text().split()) == words
