"""Figures hold on a dark background, in greyscale, without a background, and on a slide."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.text import Text
from PIL import Image

from perflab.errors import ParameterError
from perflab.figures import THROUGHPUT, draw_view, provenance, save_view
from perflab.figures.inks import READABLE, contrast, dress
from perflab.figures.looks import MARKERS, luminance
from perflab.figures.style import PLAIN, Style
from perflab.figures.theme import DARK, THEMES
from perflab.reports.pictures import views_of
from tests.figures.shown import cut_off, overlapping, shown_texts
from tests.figures.studies import VIEWS

# G. M. Machado, M. M. Oliveira, L. A. F. Fernandes, IEEE TVCG 15(6), 2009, severity 1.0.
SEEN_BY = {
    "protanopia": [
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ],
    "deuteranopia": [
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ],
}
SMALLEST_PT = 6.0


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_every_colour_can_be_seen_on_its_background(theme) -> None:
    assert all(contrast(color, theme.background) >= READABLE for color in theme.palette)
    # Text of any size (WCAG 2.2, 1.4.3).
    assert all(contrast(ink, theme.background) >= 4.5 for ink in (theme.ink, theme.muted))


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_neighbours_differ_in_greyscale_and_the_first_four_all_do(theme) -> None:
    grey = [luminance(color) for color in theme.palette]
    assert all(abs(a - b) >= 0.1 for a, b in pairwise(grey))
    assert all(abs(a - b) >= 0.1 for a, b in combinations(grey[:4], 2))
    assert len(set(MARKERS)) == len(theme.palette)


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
@pytest.mark.parametrize("eye", SEEN_BY)
def test_neighbours_differ_for_those_who_do_not_see_red_or_green(theme, eye) -> None:
    linear = np.array([to_rgb(color) for color in theme.palette]) ** 2.2
    seen = np.clip(linear @ np.array(SEEN_BY[eye]).T, 0, 1) ** (1 / 2.2)
    assert all(np.linalg.norm(a - b) >= 0.15 for a, b in pairwise(seen))
    assert all(np.linalg.norm(a - b) >= 0.15 for a, b in combinations(seen[:4], 2))


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in VIEWS if case != "eight"])
def test_every_word_can_be_read_on_a_dark_background_and_none_is_moved(case, request) -> None:
    for view in views_of(request.getfixturevalue(case)):
        figure = draw_view(view, request.getfixturevalue(case))
        before = [text.get_window_extent().bounds for text in shown_texts(figure)]
        dress(figure, DARK)
        assert [text.get_window_extent().bounds for text in shown_texts(figure)] == before
        assert cut_off(figure) == []
        assert overlapping(figure) == []
        inside = [text for text in shown_texts(figure) if getattr(text, "_dressed", False)]
        for text in shown_texts(figure):
            if text not in inside:
                assert contrast(text.get_color(), DARK.background) >= 4.5, (view.name, text)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["normal", "clients", "codecs", "copies"])
def test_no_word_is_smaller_than_can_be_read_on_a_page(case, request) -> None:
    for view in views_of(request.getfixturevalue(case)):
        words: list[Text] = shown_texts(draw_view(view, request.getfixturevalue(case)))
        assert min(text.get_fontsize() for text in words) >= SMALLEST_PT


def test_no_mark_stays_in_the_ink_of_the_other_background(normal) -> None:
    for view in views_of(normal):
        figure = draw_view(view, normal)
        dress(figure, DARK)
        for line in (line for axes in figure.axes for line in axes.lines):
            if line.get_marker() not in ("None", "", None):
                edge = line.get_markeredgecolor()
                face = line.get_markerfacecolor()
                best = max(contrast(each, DARK.background) for each in (edge, face))
                assert best >= READABLE, view.name


@pytest.mark.parametrize("theme", THEMES)
def test_without_a_background_the_corners_can_be_seen_through(normal, tmp_path, theme) -> None:
    svg, png, _ = save_view(THROUGHPUT, normal, tmp_path, style=Style(theme, transparent=True))
    with Image.open(png) as picture:
        assert picture.mode == "RGBA"
        assert picture.getpixel((0, 0))[3] == 0
        assert picture.getextrema()[3][1] == 255
    assert provenance(svg)["style"]["transparent"] is True


def test_a_dark_figure_lies_beside_the_light_one_with_the_same_table(normal, tmp_path) -> None:
    light = save_view(THROUGHPUT, normal, tmp_path)
    dark = save_view(THROUGHPUT, normal, tmp_path, style=Style("dark"))
    names = ["throughput-dark.svg", "throughput-dark.png", "throughput.csv"]
    assert [path.name for path in dark] == names
    assert light[-1] == dark[-1]
    with Image.open(dark[1]) as picture:
        corner = picture.convert("RGB").getpixel((0, 0))
    assert corner == tuple(round(255 * part) for part in to_rgb(DARK.background))


def test_a_slide_is_the_page_enlarged(normal, tmp_path) -> None:
    page = save_view(THROUGHPUT, normal, tmp_path / "page")
    slide = save_view(THROUGHPUT, normal, tmp_path / "slide", style=Style(width="slide"))
    with Image.open(page[1]) as small, Image.open(slide[1]) as large:
        assert (small.width, large.width) == (1440, 2000)
    assert 'width="720pt"' in slide[0].read_text()
    assert "style" not in provenance(page[0])


@pytest.mark.parametrize(
    ("words", "told"), [({"width": "colum"}, "column, page, slide"), ({"theme": "drk"}, "dark")]
)
def test_a_style_that_there_is_not_names_the_way_out(words, told) -> None:
    with pytest.raises(ParameterError, match=told):
        Style(**words)
    assert PLAIN.told() == {}


REBUILT = {"svg", "png"}


def save_everything(run, directory: Path) -> None:
    """Save every figure in both formats for both backgrounds; what is transparent as well."""
    for view in views_of(run):
        save_view(view, run, directory, sorted(REBUILT))
        save_view(view, run, directory, sorted(REBUILT), Style("dark", transparent=True))
