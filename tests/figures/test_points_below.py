"""Points of refused trials are hollow and lie below those of valid ones."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from perflab.figures.charts.layers import draw_points
from perflab.figures.theme import Look

LOOKS = {"a": Look("#102030", "o", "a"), "b": Look("#aabbcc", "s", "b")}


def drawn(states: list[str], **how: Any) -> list[Any]:
    axes = Figure().subplots()
    points = pd.DataFrame({"x": 1.0, "y": 1.0, "what": "a", "state": states})
    draw_points(axes, points, "x", "y", "what", LOOKS, **how)
    return list(axes.collections)


@pytest.mark.parametrize("how", [{}, {"zorder": 2}])
@pytest.mark.parametrize("states", [["valid", "invalid"], ["invalid", "valid"]])
def test_refused_points_lie_below_valid_ones(states: list[str], how: dict[str, Any]) -> None:
    below, above = sorted(drawn(states, **how), key=lambda points: points.get_zorder())
    assert below.get_zorder() < above.get_zorder()
    assert below.get_facecolor()[0] == pytest.approx(to_rgba("white"))
    assert above.get_facecolor()[0] == pytest.approx(to_rgba("#102030"))
    assert above.get_zorder() == how.get("zorder", 3)


def test_refused_points_alone_are_hollow_in_their_own_color() -> None:
    (only,) = drawn(["invalid", "invalid"])
    assert only.get_edgecolor()[0] == pytest.approx(to_rgba("#102030"))


def test_points_without_a_look_are_left_out() -> None:
    axes = Figure().subplots()
    points = pd.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0], "who": ["nobody", "nobody"]})
    looks = {"a": Look("#000000", "o", "a")}
    for states in (["valid", "invalid"], ["invalid", "invalid"]):
        draw_points(axes, points.assign(state=states), "x", "y", "who", looks)
    assert not axes.collections
