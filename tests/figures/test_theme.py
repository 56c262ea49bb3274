"""Words fit their places; treatments differ for every reader; the small print is short."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.formatters import DisplayFormatter
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from perflab.figures.canvas import LabFigure, finish, page_canvas, show_whole
from perflab.figures.origin import page_of
from perflab.figures.theme import (
    INK,
    MARKERS,
    MUTED,
    PALETTE,
    appearance,
    applied,
    luminance,
    styles_of,
    text_width_in,
    tick_label,
    wrap,
)
from perflab.recordings import Contrast, RunRecord
from tests.support.planted_trial import Planted
from tests.support.synthetic import contrast_of, variants, write_run

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


def contrast_with_white(color: str) -> float:
    """Return the contrast of a colour with white, from 1 to 21 (WCAG 2.2)."""
    parts = np.array(to_rgb(color))
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return 1.05 / (float(linear @ [0.2126, 0.7152, 0.0722]) + 0.05)


def test_every_colour_can_be_seen_on_white() -> None:
    # Lines and areas (WCAG 2.2, 1.4.11), and text of any size (1.4.3).
    assert all(contrast_with_white(color) >= 3.0 for color in PALETTE)
    assert all(contrast_with_white(ink) >= 4.5 for ink in (INK, MUTED))


def test_neighbours_differ_in_greyscale_and_the_first_four_all_do() -> None:
    grey = [luminance(color) for color in PALETTE]
    assert all(abs(a - b) >= 0.1 for a, b in pairwise(grey))
    assert all(abs(a - b) >= 0.1 for a, b in combinations(grey[:4], 2))


@pytest.mark.parametrize("eye", SEEN_BY)
def test_neighbours_differ_for_those_who_do_not_see_red_or_green(eye) -> None:
    linear = np.array([to_rgb(color) for color in PALETTE]) ** 2.2
    simulated = np.clip(linear @ np.array(SEEN_BY[eye]).T, 0, 1) ** (1 / 2.2)
    assert all(np.linalg.norm(a - b) >= 0.15 for a, b in pairwise(simulated))
    assert all(np.linalg.norm(a - b) >= 0.15 for a, b in combinations(simulated[:5], 2))


def test_no_two_of_64_treatments_look_alike() -> None:
    styles = [appearance(place) for place in range(64)]
    assert len(set(styles)) == 64
    # The first eight differ in both colour and marker.
    assert styles[:8] == list(zip(PALETTE, MARKERS, strict=True))


@given(st.text(st.characters(codec="latin-1", categories=["L", "N", "P", "Zs"]), max_size=120))
def test_no_wrapped_line_is_wider_than_asked(text: str) -> None:
    assert all(text_width_in(line, 8) <= 1.5 for line in wrap(text, 8, 1.5))


@given(st.lists(st.text("abc=", min_size=1, max_size=30), max_size=12))
def test_wrapping_loses_no_letter(words: list[str]) -> None:
    assert "".join(wrap(" ".join(words), 8, 1.0)).replace(" ", "") == "".join(words)


def test_a_long_label_keeps_its_beginning_and_its_end_and_a_short_one_all() -> None:
    label = "first factor = yes, " + "another factor = whatever, " * 12 + "last factor = 7"
    shown = tick_label(label, 1.9, 8, lines=3)
    assert shown.count("\n") <= 2
    assert shown.startswith("first")
    assert shown.endswith("7")
    assert "…" in shown
    assert tick_label("driver = asyncpg").replace("\u00a0", " ") == "driver = asyncpg"


def record_of(root: Path, treatments: list[Planted], claims: list[Contrast]) -> RunRecord:
    return write_run(root, treatments=treatments, contrasts=claims, blocks=1, requests=10).record


def test_the_order_changes_no_treatments_colour(tmp_path) -> None:
    four = list(variants(4))
    styles = styles_of(record_of(tmp_path, four, [contrast_of(four[3], four[0])]))
    assert list(styles) == [four[n].name for n in (0, 3, 1, 2)]
    assert [style.color for style in styles.values()] == [PALETTE[n] for n in (0, 3, 1, 2)]


def test_treatments_with_fewer_trials_are_counted_where_they_are_many(tmp_path) -> None:
    lacking = {0: 1, 1: 1, 2: 2, 3: 3}
    failed = {(block, index) for index, blocks in lacking.items() for block in range(blocks)}
    run = write_run(
        tmp_path, treatments=variants(7), blocks=3, requests=20, failed=failed, contrasts=[]
    )
    assert run.n_text() == "n = 3 valid trials for 3 treatments, 2 for 2, 1 for 1, 0 for 1"


def test_letters_that_no_font_has_bring_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    with applied():
        figure = LabFigure()
        FigureCanvasAgg(figure)
        figure.text(0, 0.5, "\U0001f600 日本 v1")
        figure.canvas.draw()
    text_width_in("\U0001f600 日本 v1", 8)
    assert [str(warning.message) for warning in recwarn] == []


def test_a_figure_shows_itself_with_its_text_and_size_whatever_pyplot_has_set(tmp_path) -> None:
    page = page_of(write_run(tmp_path, blocks=1, requests=40))
    figure = page_canvas(page, "latency of both", 1.0)
    figure.subplots()
    formatter = DisplayFormatter()
    show_whole(formatter)
    formatter.formatters["image/png"].for_type(Figure, lambda _: b"of pyplot")
    data, metadata = formatter.format(finish(figure))
    assert data["image/png"].startswith(b"\x89PNG")
    assert metadata["image/png"]["alt"] == "Latency of both"
    assert metadata["image/png"]["width"] == 720
