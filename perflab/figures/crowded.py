"""Words around panels that are broken, and numbers that are left out, where a panel is too small.

A page's words were broken by hand for its panels; on a narrower sheet nobody did that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.text import Text

from perflab.figures.words import text_width_in, wrap

# Between two numbers of an axis.
GAP_IN = 0.05
LINE = 1.3


def break_words(figure: Figure) -> None:
    """Break titles and labels of panels into lines that are no longer than their panel's side."""
    for axes in figure.axes:
        box, dpi = axes.get_window_extent(), figure.dpi
        for title in _titles(axes):
            _break(title, box.width / dpi)
        if axes.axison:
            _break(axes.xaxis.label, box.width / dpi)
            _break(axes.yaxis.label, box.height / dpi)


def _titles(axes: Axes) -> list[Text]:
    known = {*axes.texts}
    return [each for each in axes.get_children() if isinstance(each, Text) and each not in known]


def _break(text: Text, room_in: float) -> None:
    size, weight = float(text.get_fontsize()), str(text.get_fontweight())
    words, lines = text.get_text().split(), text.get_text().split("\n")
    # A long word stays whole: it reaches beyond a low panel, where its neighbours' have room.
    room_in = max([room_in, *(text_width_in(word, size, weight) for word in words)])
    text.set_text("\n".join(part for line in lines for part in wrap(line, size, room_in, weight)))


def leave_out_numbers(figure: Figure) -> None:
    """Keep only as many numbers at each axis as stand apart from each other."""
    for axes in figure.axes:
        if axes.axison:
            box, dpi = axes.get_window_extent(), figure.dpi
            _thin(axes.xaxis, box.width / dpi, _width_in)
            _thin(axes.yaxis, box.height / dpi, _height_in)


def _thin(axis: Axis, length_in: float, long: Callable[[str, float], float]) -> None:
    low, high = sorted(axis.get_view_interval())
    places = [float(each) for each in axis.get_majorticklocs() if low <= each <= high]
    names = axis.get_major_formatter().format_ticks(places)
    told = [(place, name) for place, name in zip(places, names, strict=True) if name.strip()]
    shown = axis.get_ticklabels()
    # The numbers of shared axes stand at one of them.
    if len(told) < 2 or not shown:
        return
    at_in = _along(axis, [place for place, _ in told], length_in)
    size = float(shown[0].get_fontsize())
    long_in = [long(name, size) for _, name in told]
    kept = next(each for each in _choices(told) if _apart(each, at_in, long_in))
    # Set also where all are kept: after another layout there might be others, without room.
    axis.set_ticks([told[n][0] for n in kept], labels=[told[n][1] for n in kept])


def _along(axis: Axis, places: Sequence[float], length_in: float) -> list[float]:
    """Return how far along its axis each place lies, in inches."""
    scale = axis.get_transform()
    low, high = (float(each) for each in scale.transform(np.array(axis.get_view_interval(), float)))
    found = scale.transform(np.array(places, float))
    return [(float(each) - low) / (high - low) * length_in for each in found]


def _width_in(name: str, size_pt: float) -> float:
    return max(text_width_in(line, size_pt) for line in name.split("\n"))


def _height_in(name: str, size_pt: float) -> float:
    return len(name.split("\n")) * size_pt * LINE / 72


def _choices(told: Sequence[tuple[float, str]]) -> list[list[int]]:
    """Return what can be kept, most first: all, or every so many, 0 or 1 among them."""
    begin = next((n for n, (place, _) in enumerate(told) if place == 0), None)
    if begin is None:
        begin = next((n for n, (place, _) in enumerate(told) if place == 1), 0)
    return [
        [n for n in range(len(told)) if (n - begin) % step == 0] for step in range(1, len(told) + 1)
    ]


def _apart(kept: Sequence[int], at_in: Sequence[float], long_in: Sequence[float]) -> bool:
    return all(
        abs(at_in[b] - at_in[a]) >= (long_in[a] + long_in[b]) / 2 + GAP_IN
        for a, b in pairwise(kept)
    )
