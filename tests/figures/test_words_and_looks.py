"""Words fit their places, every treatment has its look, and notebooks keep their settings."""

from __future__ import annotations

import matplotlib as mpl
from hypothesis import given
from hypothesis import strategies as st

from perflab.figures.theme import (
    MARKERS,
    PALETTE,
    appearance,
    applied,
    text_width_in,
    tick_label,
    wrap,
)


@given(st.text(st.characters(codec="latin-1", categories=["L", "N", "P", "Zs"]), max_size=120))
def test_no_wrapped_line_is_wider_than_asked(text: str) -> None:
    lines = wrap(text, 8, 1.5)
    assert all(text_width_in(line, 8) <= 1.5 for line in lines)


@given(st.lists(st.text("abc=", min_size=1, max_size=30), max_size=12))
def test_wrapping_loses_no_letter(words: list[str]) -> None:
    assert "".join(wrap(" ".join(words), 8, 1.0)).replace(" ", "") == "".join(words)


def test_a_long_label_keeps_its_beginning_and_its_end() -> None:
    label = "first factor = yes, " + "another factor = whatever, " * 12 + "last factor = 7"
    shown = tick_label(label, 1.9, 8, lines=3)
    assert shown.count("\n") <= 2
    assert shown.startswith("first")
    assert shown.endswith("7")
    assert "…" in shown


def test_a_short_label_is_not_shortened() -> None:
    assert tick_label("driver = asyncpg").replace("\u00a0", " ") == "driver = asyncpg"


def test_the_style_leaves_the_notebooks_settings_alone() -> None:
    before = dict(mpl.rcParams)
    with applied():
        assert mpl.rcParams["svg.fonttype"] == "path"
    assert dict(mpl.rcParams) == before


def test_the_style_holds_whatever_the_notebook_has_set() -> None:
    with mpl.rc_context({"lines.linewidth": 17, "axes.facecolor": "red"}), applied():
        assert mpl.rcParams["lines.linewidth"] != 17
        assert mpl.rcParams["axes.facecolor"] != "red"


def test_no_two_of_64_treatments_look_alike() -> None:
    looks = [appearance(place) for place in range(64)]
    assert len(set(looks)) == 64
    # The first eight differ in both colour and marker.
    assert looks[:8] == list(zip(PALETTE, MARKERS, strict=True))
