"""Layers of a chart: the rows of its table that they draw, how, and their handles in the key.

The column ``what`` says what a row is. The columns ``x`` and ``y`` are the places along the axes of
the chart; in a chart of rows ``y`` is the middle of a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.figures import theme
from perflab.figures.origin import TRIAL, TYPICAL, Page
from perflab.figures.theme import INK, MUTED, Style, tick_label
from perflab.figures.view import OTHER_LOAD, PUBLISHED, SAME_LOAD, draw_interval, reach

DASHED = (0, (4, 2))
# A label in a key, on one line.
KEY_IN, KEY_PT = 6.4, 8.0
VALID = "valid"
# Points of trials that do not count lie below the others.
ZORDER, BELOW = 3.0, 0.1
Styles = Mapping[str, Style]


class Layer(Protocol):
    """Something that is drawn in each panel of a chart and explained in its key."""

    def draw(self, axes: Axes, rows: pd.DataFrame, page: Page) -> None:
        """Draw the rows of one panel."""

    def key(self, table: pd.DataFrame, page: Page) -> Sequence[Artist]:  # noqa: ARG002
        """Return handles with labels for the whole table; none by default."""
        return ()


def rows_of(table: pd.DataFrame, of: Sequence[str]) -> pd.DataFrame:
    """Return the rows whose ``what`` is in ``of``; all rows if ``of`` is empty."""
    return table[table["what"].isin(of)] if of else table


@dataclass(frozen=True)
class Points:
    """A point per row, hollow if the trial does not count.

    ``of`` names the rows that are drawn (empty: all). The column ``by`` names the style of a row,
    among ``styles``, by default those of the run's treatments. Points lie ``at`` below the middle
    of a row; ``how`` is passed to :func:`draw_points`.
    """

    of: Sequence[str] = (TRIAL,)
    by: str = "what"
    styles: Styles | None = None
    at: float = 0.0
    how: Mapping[str, Any] = field(default_factory=dict)
    keyed: bool = True

    def draw(self, axes: Axes, rows: pd.DataFrame, page: Page) -> None:
        """Draw the rows of one panel."""
        shown = rows_of(rows, self.of)
        shown = shown.assign(y=shown["y"].astype(float) + self.at)
        draw_points(axes, shown, self.by, styles_in(self.styles, page), **self.how)

    def key(self, table: pd.DataFrame, page: Page) -> list[Line2D]:
        """Return a marker for each style that occurs."""
        named = rows_of(table, self.of)[self.by] if self.keyed else ()
        styles = labelled(styles_in(self.styles, page), named)
        return [marker(style.marker, style.color, label=style.label) for style in styles]


@dataclass(frozen=True)
class Intervals:
    """Intervals along an axis, with a mark at the value and arrows where they leave the picture.

    ``low`` and ``high`` are the columns of the ends, NaN without an interval. Intervals are shown
    ``within`` a range, by default ``beyond`` times beyond the values of the rows ``among``. Without
    ``by`` (see :class:`Points`) they are in ink, and the mark is a bar across.
    """

    of: Sequence[str] = ()
    low: str = "low"
    high: str = "high"
    along: Literal["x", "y"] = "x"
    at: float = 0.0
    beyond: float = 1.5
    among: Sequence[str] = ()
    within: tuple[float, float] | None = None
    by: str = ""
    styles: Styles | None = None
    lw: float = 1.5
    size: float = 7.0
    label: str = ""
    keyed: bool = True

    def draw(self, axes: Axes, rows: pd.DataFrame, page: Page) -> None:
        """Draw the rows of one panel."""
        within = self.within or reach(rows_of(rows, self.among)[self.along], self.beyond)
        styles = styles_in(self.styles, page)
        for row in rows_of(rows, self.of).to_dict("records"):
            style = styles.get(str(row[self.by])) if self.by else None
            color = style.color if style else INK
            place = float(row["y" if self.along == "x" else "x"]) + self.at
            ends = (float(row[self.low]), float(row[self.high]))
            draw_interval(axes, ends, place, within, self.along, color=color, lw=self.lw, zorder=4,
                          gid="interval")  # fmt: skip
            if self.size:
                shape = style.marker if style else {"x": "|", "y": "_"}[self.along]
                xy = (row["x"], place) if self.along == "x" else (place, row["y"])
                axes.add_line(marker(shape, color, size=self.size, xy=xy))

    def key(self, table: pd.DataFrame, page: Page) -> list[Line2D]:
        """Return one interval as a handle, or a handle for each style."""
        shown = rows_of(table, self.of) if self.keyed else table.iloc[:0]
        if self.by:
            handle: dict[str, Any] = {"ms": 4.5, "lw": self.lw}
            return [
                Line2D([], [], color=style.color, marker=style.marker, label=style.label, **handle)
                for style in labelled(styles_in(self.styles, page), shown[self.by])
            ]
        if not (self.label and len(shown)):
            return []
        return [Line2D([], [], color=INK, marker="|", ms=7, lw=self.lw, label=self.label)]


def Typical(**how: Any) -> Intervals:  # noqa: N802
    """Return the layer of typical values of treatments, with their 95% intervals."""
    usual: dict[str, Any] = {"of": TYPICAL, "among": (TRIAL, *TYPICAL)}
    return Intervals(**{**usual, "label": "typical value and its 95% interval", **how})


@dataclass(frozen=True)
class Marks:
    """A marker of one kind per row, filled or hollow; in one colour unless ``by`` names styles."""

    of: Sequence[str]
    marker: str
    label: str = ""
    color: str = MUTED
    hollow: bool = False
    size: float = 5.0
    at: float = 0.0
    by: str = ""
    styles: Styles | None = None

    def draw(self, axes: Axes, rows: pd.DataFrame, page: Page) -> None:
        """Draw the rows of one panel."""
        styles = styles_in(self.styles, page)
        for row in rows_of(rows, self.of).to_dict("records"):
            color = styles[str(row[self.by])].color if self.by else self.color
            xy = (row["x"], row["y"] + self.at)
            axes.add_line(marker(self.marker, color, self.hollow, self.size, xy))

    def key(self, table: pd.DataFrame, page: Page) -> list[Line2D]:  # noqa: ARG002
        """Return the marker, if it occurs and has a label."""
        if not (self.label and len(rows_of(table, self.of))):
            return []
        return [marker(self.marker, self.color, self.hollow, self.size, label=self.label)]


@dataclass(frozen=True)
class Published:
    """Diamonds at published values, filled if the run has the published load (``state``)."""

    at: float = 0.0

    def draw(self, axes: Axes, rows: pd.DataFrame, page: Page) -> None:  # noqa: ARG002
        """Draw the rows of one panel."""
        for row in rows_of(rows, (PUBLISHED,)).dropna(subset=["x", "y"]).to_dict("records"):
            place = ([row["x"]], [row["y"] + self.at])
            axes.add_line(self._diamond(str(row["state"]), *place))

    def _diamond(self, load: str, *place: list[float], label: str = "") -> Line2D:
        fill, edge = (
            (theme.PUBLISHED_COLOR, "white")
            if load == SAME_LOAD
            else ("white", theme.PUBLISHED_COLOR)
        )
        return Line2D(*(place or ([], [])), marker="D", ms=5.5, mfc=fill, mec=edge, mew=1.3, ls="",
                      zorder=6, clip_on=False, gid="published", label=label)  # fmt: skip

    def key(self, table: pd.DataFrame, page: Page) -> list[Line2D]:  # noqa: ARG002
        """Return the diamonds that occur."""
        words = {SAME_LOAD: "published, same load", OTHER_LOAD: "published; this run: other load"}
        loads = set(rows_of(table, (PUBLISHED,))["state"])
        return [self._diamond(load, label=words[load]) for load in words if load in loads]


@dataclass(frozen=True)
class Rules:
    """A line across the panel at each value along an axis: a target, a limit."""

    of: Sequence[str]
    label: str = ""
    along: Literal["x", "y"] = "x"
    color: str = MUTED
    ls: Any = DASHED

    def draw(self, axes: Axes, rows: pd.DataFrame, page: Page) -> None:  # noqa: ARG002
        """Draw the rows of one panel."""
        across = axes.axvline if self.along == "x" else axes.axhline
        for value in rows_of(rows, self.of)[self.along].dropna():
            across(float(value), color=self.color, lw=1.0, ls=self.ls, zorder=1, gid="rule")

    def key(self, table: pd.DataFrame, page: Page) -> list[Line2D]:  # noqa: ARG002
        """Return the line, if it occurs and has a label."""
        if not (self.label and len(rows_of(table, self.of))):
            return []
        return [Line2D([], [], color=self.color, lw=1.0, ls=self.ls, label=self.label)]


@dataclass(frozen=True)
class Lines:
    """A line through the rows of each style and each value of ``unit``.

    Without ``by`` all lines have one ``color``, and the key has ``label``. With ``marked`` each row
    has the marker of its style. ``how`` is passed to :meth:`matplotlib.axes.Axes.plot`.
    """

    of: Sequence[str] = ()
    by: str = ""
    unit: str = ""
    styles: Styles | None = None
    color: str = MUTED
    marked: bool = False
    how: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    keyed: bool = True

    def draw(self, axes: Axes, rows: pd.DataFrame, page: Page) -> None:
        """Draw the rows of one panel."""
        for style, line in self._lines(rows, page):
            how: dict[str, Any] = {"color": style.color, "lw": 1.4, "zorder": 2}
            how |= {"marker": style.marker, "ms": 4.0} if self.marked else {}
            axes.plot(line["x"], line["y"], **{**how, **self.how})

    def _lines(self, rows: pd.DataFrame, page: Page) -> Iterator[tuple[Style, pd.DataFrame]]:
        shown = rows_of(rows, self.of)
        for name, style in self._styles(page).items():
            of_look = shown[shown[self.by] == name] if self.by else shown
            parts = of_look.groupby(self.unit, sort=False) if self.unit else [("", of_look)]
            yield from ((style, part) for _, part in parts if len(part))

    def _styles(self, page: Page) -> Styles:
        return styles_in(self.styles, page) if self.by else {"": Style(self.color, "", self.label)}

    def key(self, table: pd.DataFrame, page: Page) -> list[Line2D]:
        """Return a line for each style that occurs."""
        shown = rows_of(table, self.of) if self.keyed else table.iloc[:0]
        named = shown[self.by] if self.by else [""] * len(shown)
        handle: dict[str, Any] = {"lw": 1.4, "ms": 4.5}
        handle |= {name: self.how[name] for name in ("ls", "lw") if name in self.how}
        return [
            Line2D([], [], color=style.color, marker=style.marker if self.marked else "",
                   label=style.label, **handle)
            for style in labelled(self._styles(page), named)
            if style.label
        ]  # fmt: skip


def styles_in(styles: Styles | None, page: Page) -> Styles:
    """Return the styles of a layer, by default those of the run's treatments."""
    return page.styles if styles is None else styles


def labelled(styles: Styles, named: Iterable[object]) -> list[Style]:
    """Return the styles that are named, with labels that fit on a line of a key."""
    names = set(named)
    shown = [style for name, style in styles.items() if name in names]
    return [replace(style, label=key_label(style.label)) for style in shown]


def key_label(label: str) -> str:
    """Return a label that fits on a line of a key."""
    return tick_label(label, KEY_IN, KEY_PT, 1)


def marker(
    kind: str,
    color: str,
    hollow: bool = False,
    size: float = 4.5,
    xy: tuple[float, float] | None = None,
    label: str = "",
) -> Line2D:
    """Return one marker, at ``xy`` or for a key."""
    places = ([xy[0]], [xy[1]]) if xy else ([], [])
    return Line2D(
        *places, ls="", marker=kind, ms=size, mec=color, mfc="white" if hollow else color,
        mew=1.3 if hollow or kind in "x|_" else 0.3, label=label, zorder=5,
        clip_on=False,
    )  # fmt: skip


def highest_of(rows: pd.DataFrame, column: str) -> float:
    """Return the largest number of a column; NaN if it has none."""
    return float(rows[column].astype(float).max())


def draw_points(axes: Axes, points: pd.DataFrame, by: str, styles: Styles, **how: Any) -> None:
    """Draw each row of ``points`` as a point, in the style that its column ``by`` names.

    Rows without a style, or without a number in x or y, are left out. If there is a column
    ``state``, points that are not ``valid`` are hollow and lie below the others. ``how`` is passed
    to :func:`seaborn.scatterplot`.
    """
    finite = np.isfinite(points[["x", "y"]].to_numpy(float)).all(axis=1)
    shown = points.loc[finite & points[by].isin(list(styles))]
    valid = shown.get("state", pd.Series(VALID, shown.index)).eq(VALID)
    if not valid.all():
        below = {**how, "zorder": how.get("zorder", ZORDER) - BELOW}
        before = len(axes.collections)
        _scatter(axes, shown.loc[~valid], by, styles, **below)
        for drawn in axes.collections[before:]:
            drawn.set(edgecolors=drawn.get_facecolor(), facecolors="white", linewidths=1.0)
    _scatter(axes, shown.loc[valid], by, styles, **how)


def _scatter(axes: Axes, points: pd.DataFrame, by: str, styles: Styles, **how: Any) -> None:
    import seaborn as sns

    names = [name for name in styles if name in set(points[by])]
    if not names:
        return
    settings: dict[str, Any] = {"s": 20, "edgecolor": "white", "linewidth": 0.3, "zorder": ZORDER}
    # seaborn renames the axes; the charts have their own labels.
    named = {"xlabel": axes.get_xlabel(), "ylabel": axes.get_ylabel()}
    sns.scatterplot(
        points, x="x", y="y", hue=by, style=by, hue_order=names, style_order=names, legend=False,
        palette={name: styles[name].color for name in names},
        markers={name: styles[name].marker for name in names},
        ax=axes, **{**settings, **how},
    )  # fmt: skip
    axes.set(**named)
