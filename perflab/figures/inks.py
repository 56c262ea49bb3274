"""A finished figure put into the inks of another background; its lines stay where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.text import Text

from perflab.figures.theme import LIGHT, Theme

# W3C, Web Content Accessibility Guidelines 2.2, 1.4.11: lines and areas need at least 3:1.
READABLE = 3.0
NEARLY_WHITE = 0.86

Rgba = tuple[float, float, float, float]
Change = Callable[[Any], Rgba]


def contrast(one: Any, other: Any) -> float:
    """Return the contrast of two colours, from 1 to 21 (WCAG 2.2)."""
    low, high = sorted((_light(one), _light(other)))
    return (high + 0.05) / (low + 0.05)


def dress(figure: Figure, theme: Theme, *, transparent: bool = False) -> None:
    """Put every ink of a figure into those of ``theme``, and leave its background out if asked."""
    if theme is not LIGHT:
        change = _changer(theme)
        figure.draw_without_rendering()
        for axes in figure.axes:
            _dress_words_in_bars(axes, theme)
        for artist in dict.fromkeys(figure.findobj()):
            if isinstance(artist, Line2D):
                _line(artist, change)
            elif isinstance(artist, Text):
                _text(artist, change)
            elif isinstance(artist, Patch | Collection):
                _area(artist, change, theme)
    if transparent:
        for patch in (figure.patch, *(axes.patch for axes in figure.axes)):
            patch.set_alpha(0.0)


def _light(color: Any) -> float:
    parts = np.array(to_rgb(color))
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def _changer(theme: Theme) -> Change:
    """Return what puts one colour into the theme: its own partner, or one that can be seen."""
    pairs = [(name, getattr(theme, name)) for name in ("background", "ink", "muted", "faint")]
    known = {to_rgb(getattr(LIGHT, name)): to_rgb(ink) for name, ink in pairs}
    known |= {to_rgb(a): to_rgb(b) for a, b in zip(LIGHT.palette, theme.palette, strict=True)}
    background = np.array(to_rgb(theme.background))

    def change(color: Any) -> Rgba:
        red, green, blue, alpha = to_rgba(color)
        found = known.get((red, green, blue))
        if found is None:
            ink = np.array((red, green, blue))
            # A tint of white becomes a tint of the background.
            pale = ink.min() > NEARLY_WHITE
            found = tuple(background + 0.6 * (1 - ink)) if pale else tuple(ink)
        return (found[0], found[1], found[2], alpha)

    return change


def _line(line: Any, change: Change) -> None:
    # Asked for all before one is set: a marker has its line's colour unless told otherwise.
    parts = ("color", "markerfacecolor", "markeredgecolor")
    for part, color in [(part, getattr(line, f"get_{part}")()) for part in parts]:
        if not (isinstance(color, str) and color == "none"):
            getattr(line, f"set_{part}")(change(color))


def _text(text: Any, change: Change) -> None:
    if (box := text.get_bbox_patch()) is not None:
        box.set_facecolor(change(box.get_facecolor()))
    if not getattr(text, "_dressed", False):
        text.set_color(change(text.get_color()))


def _area(area: Any, change: Change, theme: Theme) -> None:
    edge = np.atleast_2d(area.get_edgecolor())
    separated = isinstance(area, Rectangle) and tuple(edge[0][:3]) == to_rgb("white")
    faces = [change(face) for face in np.atleast_2d(area.get_facecolor()) if len(face)]
    edges = [change(each) for each in edge if len(each)]
    if separated and faces and contrast(faces[0], theme.background) < READABLE:
        # A dark bar would be one with its background.
        edges = [to_rgba(theme.muted)]
    one = isinstance(area, Patch)
    area.set_facecolor(faces[0] if one and faces else faces)
    if edges:
        area.set_edgecolor(edges[0] if one else edges)


def _dress_words_in_bars(axes: Axes, theme: Theme) -> None:
    """Keep the ink of words that stand in a bar which keeps its colour."""
    bars = [
        (bar.get_window_extent(), bar.get_facecolor())
        for bar in axes.patches
        if isinstance(bar, Rectangle) and to_rgba(bar.get_facecolor())[3] == 1
    ]
    partners = _changer(theme)
    for text in axes.texts:
        box = text.get_window_extent()
        place = ((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2)
        under = [face for extent, face in bars if extent.contains(*place)]
        if under:
            face = partners(under[-1])
            inks = (theme.ink, theme.background)
            text.set_color(max(inks, key=lambda ink: contrast(ink, face)))
            text._dressed = True  # type: ignore[attr-defined]
