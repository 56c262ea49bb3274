"""An effect over runs as a table that shows itself, on a terminal, and as a figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.table import Table
from rich.text import Text

from perflab.analysis.treatments.trends import LevelChange, Series
from perflab.display import Shown
from perflab.errors import ParameterError
from perflab.reports.numbers import estimate, measured, p_value

if TYPE_CHECKING:
    from perflab.figures.canvas import LabFigure

FORMATS = ("svg", "png", "pdf")
MOST_PANELS = 12
HEADS = ("day", "commit", "run", "effect [95%]", "blocks", "change")
CHANGE_COLUMNS = [
    "series", "contrast", "first_run", "commit", "p_value", "size", "low", "high", "runs_before",
    "runs_after",
]  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Trend:
    """The effects of an experiment over its runs; it shows itself.

    ``series`` are of runs that may stand together; ``apart`` says by question what sets one apart
    (backend, machine, parameters). ``notes`` say what was left out, ``problems`` what is damaged.
    """

    experiment: str
    series: tuple[Series, ...]
    apart: Mapping[str, str]
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def table(self) -> pd.DataFrame:
        """A row per run and contrast: ``series`` is a number, ``level`` counts from 1 on."""
        parts = [
            each.table.assign(
                series=number,
                contrast=each.contrast,
                response=each.response,
                backend=each.backend,
                machine_id=each.machine_id,
                level=[
                    1 + sum(change.place <= place for change in each.changes)
                    for place in range(len(each.table))
                ],
            )
            for number, each in enumerate(self.series, 1)
        ]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    @property
    def changes(self) -> pd.DataFrame:
        """A row per change: the first run after it, p-value, and its size with 95% interval."""
        rows = [
            (
                number,
                each.contrast,
                *each.table.loc[change.place, ["run", "commit"]],
                change.p_value,
                change.size,
                change.low,
                change.high,
                change.before,
                change.after,
            )
            for number, each in enumerate(self.series, 1)
            for change in each.changes
        ]
        return pd.DataFrame(rows, columns=CHANGE_COLUMNS)

    def said(self) -> list[str]:
        """Return a sentence per series, and one per change in it."""
        return [
            sentence
            for each in self.series
            for sentence in (
                f"{self.heading(each)}: {each.said()}",
                *(_change_words(each, change) for change in each.changes),
            )
        ]

    def heading(self, series: Series) -> str:
        """Return the contrast of a series, and what sets its runs apart from others."""
        apart = self.apart.get(series.question_id, "")
        return f"{series.contrast} ({apart})" if apart else series.contrast

    def _repr_html_(self) -> str:
        return "".join(each._repr_html_() for each in self._shown())

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self._shown()))

    def _shown(self) -> Iterator[Shown]:
        for each in self.series:
            text = pd.DataFrame(list(rows_of(each)), columns=list(HEADS))
            said = [each.said(), *(_change_words(each, change) for change in each.changes)]
            yield Shown(each.table, text, frozenset({"blocks"}), self.heading(each), said)
        if words := self.below():
            table = pd.DataFrame({"note": words}, dtype=str)
            yield Shown(table, table)

    def below(self) -> list[str]:
        """Return what was left out, and whether that was all."""
        nothing = [] if self.series else [f"no finished run of '{self.experiment}' has an effect"]
        return [*nothing, *self.notes, *(f"left out: {each}" for each in self.problems)]

    def draw(self) -> LabFigure:
        """Return the figure: a panel per series, those with most runs where there are many."""
        from perflab.figures.plots.trend_lines import draw_trend
        from perflab.reports.trend_page import page_of_trend

        return draw_trend(self._drawn(), self.apart, page_of_trend(self))

    def _drawn(self) -> list[Series]:
        having = [each for each in self.series if len(each.table)]
        if not having:
            raise ParameterError("trend", [f"no run of '{self.experiment}' has a number to draw"])
        most = sorted(having, key=lambda each: -len(each.table))[:MOST_PANELS]
        return [each for each in having if each in most]

    def save(self, path: Path | str) -> Path:
        """Save the figure, with its origin inside, as SVG, PNG or PDF by the path's ending."""
        from perflab.figures.export import save_drawing
        from perflab.reports.trend_page import page_of_trend

        place = Path(path)
        kind = place.suffix.lower().removeprefix(".")
        if kind not in FORMATS:
            raise ParameterError("figure", [f"{place} ends in none of {', '.join(FORMATS)}"])
        (saved,) = save_drawing(self.draw(), place.stem, page_of_trend(self), place.parent, [kind])
        return saved


def rows_of(series: Series) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each run; day and commit only where they are new."""
    last = ("", "")
    changes = {change.place: change for change in series.changes}
    for place, row in enumerate(series.table.to_dict("records")):
        commit = f"{str(row['commit'])[:8] or 'unknown'}{'+changes' if row['dirty'] else ''}"
        new = (_day(row), commit)
        told = tuple("" if now == before else now for now, before in zip(new, last, strict=True))
        last = new
        change = f"x {_size(series, changes[place])}" if place in changes else ""
        effect = _number(series, row["effect"], row["low"], row["high"])
        yield (*told, str(row["run"]), effect, str(row["n"]), change)


def to_terminal(trend: Trend, series: Series) -> Table:
    """Return a series as a rich table."""
    drawn = Table(*HEADS, title=Text(trend.heading(series)), title_justify="left")
    for cells in rows_of(series):
        drawn.add_row(*(Text(cell) for cell in cells[:-1]), Text(cells[-1], "yellow"))
    return drawn


def _change_words(series: Series, change: LevelChange) -> str:
    row: Any = series.table.loc[change.place]
    by = "times" if series.scale == "ratio" else "more by"
    return (
        f"from run {row['run']} on {by} {_size(series, change)}, p {p_value(change.p_value)}; "
        f"{change.before} runs before it, {change.after} from it on"
    )


def _size(series: Series, change: LevelChange) -> str:
    return _number(series, change.size, change.low, change.high)


def _number(series: Series, value: float, low: float, high: float) -> str:
    if series.scale == "ratio":
        return estimate(value, low, high)
    return f"{measured(value, low, high)} {series.unit}".strip()


def _day(row: Mapping[Any, Any]) -> str:
    return "" if pd.isna(row["created_at"]) else f"{row['created_at']:%Y-%m-%d}"
