"""A view: a tidy table of a run, and how a picture is drawn from that table alone.

Tables are saved as CSV and read back. Texts are quoted and numbers are not, so a level called
``200`` stays a text, and an empty text is no missing number. Numbers have six significant digits;
a missing number is ``nan``.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from perflab.analysis.evaluation import Finding, evaluate
from perflab.errors import RowsMissing
from perflab.figures.canvas import LabFigure, empty_figure
from perflab.figures.origin import Page, page_of
from perflab.figures.theme import applied
from perflab.recordings import Run
from perflab.recordings.reference import TABLES_OF_VIEWS

# Beyond this, floats skip whole numbers.
EXACT = 2.0**53
ARROWS = {"x": ("<", ">"), "y": ("v", "^")}
ARROW_PT = 3.5
ARROW = "An arrow ends an interval that leaves the picture."
PUBLISHED = "published"
SAME_LOAD, OTHER_LOAD = "published load", "other load"


def to_csv(table: pd.DataFrame) -> str:
    """Return a table of texts and numbers as CSV.

    TypeError where a column holds anything else; truth values need words.
    """
    target = io.StringIO()
    writer = csv.writer(target, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(map(str, table.columns))
    # Concatenated tables without rows turn columns of numbers into columns of objects.
    typed = table.infer_objects()
    columns = [
        column if pd.api.types.is_numeric_dtype(column) else column.fillna("")
        for _, column in typed.items()
    ]
    writer.writerows(map(_cell, row) for row in zip(*columns, strict=True))
    return target.getvalue()


def read_csv(text: str) -> pd.DataFrame:
    """Return the table of :func:`to_csv`; a column of whole numbers holds integers."""
    names, *rows = csv.reader(io.StringIO(text), quoting=csv.QUOTE_NONNUMERIC)
    return pd.DataFrame(rows, columns=names).apply(_whole)


def reread(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table as it is read back from its file."""
    return read_csv(to_csv(table))


class _Number(float):
    """A number that is written with six significant digits."""

    def __repr__(self) -> str:
        return f"{float(self):.6g}"

    __str__ = __repr__


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return _Number(value)
    if isinstance(value, str | int) and not isinstance(value, bool):
        return value
    raise TypeError(f"{value!r:.80} is no text and no number; a table of a view has words for it")


def _whole(column: pd.Series[Any]) -> pd.Series[Any]:
    if column.dtype.kind != "f" or not np.isfinite(column).all():
        return column
    whole = (column == column.round()) & (column.abs() < EXACT)
    return column.astype(int) if whole.all() else column


@dataclass(frozen=True)
class View:
    """One kind of picture; its files have its ``name``.

    ``table`` returns everything in the picture except the words around it, as a tidy table of texts
    and numbers, without rows if the run has none of it. ``draw`` draws a table with rows, without
    the run. ``suits`` says whether a run is of the kind that the view shows, whatever was measured,
    and ``empty`` why there may be nothing to show. The table ``of_findings`` takes these beside the
    run.
    """

    name: str
    title: str
    table: Callable[..., pd.DataFrame]
    draw: Callable[[pd.DataFrame, Page], LabFigure]
    suits: Callable[[Run], bool] = lambda _: True
    empty: Callable[[Page], str] = lambda page: page.nothing
    of_findings: bool = False

    def shown(self, run: Run, findings: Sequence[Finding] | None = None) -> pd.DataFrame:
        """Return the table of a run; without rows if the recording lacks the rows for it.

        A run of the reference has the table in place of the rows. A run without ``findings`` is
        evaluated if the table needs them.
        """
        try:
            if self.of_findings:
                return self.table(run, evaluate(run) if findings is None else findings)
            return self.table(run)
        except RowsMissing:
            file = run.path / TABLES_OF_VIEWS / f"{self.name}.csv"
            return read_csv(file.read_text()) if file.exists() else pd.DataFrame()


def varies(*factors: str) -> Callable[[Run], bool]:
    """Return a condition for :class:`View`: a run has all these factors."""
    return lambda run: set(factors) <= set(run.record.factors)


def draw_table(view: View, table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a table as it was read from its file, or say why it has no rows."""
    with applied():
        if table.empty:
            return empty_figure(page, view.title, view.empty(page))
        return view.draw(table, page)


def draw_view(view: View, run: Run) -> LabFigure:
    """Draw a run as it would be saved, with the digits that the file has.

    The figure of a run that the view does not suit says that there is nothing to show.
    """
    table = reread(view.shown(run)) if view.suits(run) else pd.DataFrame()
    return draw_table(view, table, page_of(run))


def reach(values: Iterable[float], factor: float) -> tuple[float, float]:
    """Return the range in which intervals are shown: ``factor`` times beyond the values."""
    inside = [value for value in values if math.isfinite(value)]
    return (min(inside) / factor, max(inside) * factor) if inside else (-math.inf, math.inf)


def draw_interval(
    axes: Axes,
    interval: tuple[float, float],
    at: float,
    within: tuple[float, float],
    along: Literal["x", "y"] = "x",
    arrow_pt: float = ARROW_PT,
    **line: Any,
) -> None:
    """Draw an interval along one axis, ``at`` a place on the other; nothing if it is NaN.

    An interval that leaves ``within`` ends in an arrow. ``line`` is passed to
    :meth:`matplotlib.axes.Axes.plot`.
    """
    if any(map(math.isnan, interval)):
        return
    ends = np.clip(interval, *within).tolist()

    def plot(places: list[float], **how: Any) -> None:
        across = [at] * len(places)
        axes.plot(*((places, across) if along == "x" else (across, places)), **how)

    plot(ends, **line)
    arrow = {"color": line.get("color"), "zorder": line.get("zorder", 2) + 0.1}
    for end, end_of_interval, marker in zip(ends, interval, ARROWS[along], strict=True):
        if end != end_of_interval:
            plot([end], ls="", marker=marker, ms=arrow_pt, clip_on=False, gid="arrow", **arrow)
