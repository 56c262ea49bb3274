"""Checks of every saved figure: it is drawn from the file beside it, and from all columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd

from perflab.figures import View, save_view
from perflab.figures.export import rendered
from perflab.figures.origin import Page, page_of
from perflab.figures.view import draw_table, read_csv, reread
from perflab.recordings import Run
from perflab.reports.figures import views_of

# A column is unused if changes in this many rows, spread over the table, change no picture.
TRIED = 24


def check_drawn_from_files(run: Run, names: Sequence[str], folder: Path) -> None:
    """Check that these views, drawn again from their saved tables, give the saved pictures."""
    for view in (view for view in views_of(run) if view.name in names):
        svg, table = save_view(view, run, folder, ["svg"])
        saved = read_csv(table.read_text())
        (_, again), _ = rendered(replace(view, table=lambda *_, saved=saved: saved), run, ["svg"])
        assert again == svg.read_bytes(), view.name


def check_columns_are_seen(run: Run, names: Sequence[str]) -> None:
    """Check that changing a cell of any column of these views changes the picture."""
    page = page_of(run)
    for view in (view for view in views_of(run) if view.name in names):
        table = reread(view.shown(run))
        original = fingerprint(view, table, page)
        for column in table:
            changed = _changed(table, str(column))
            first = next(changed, None)
            # An empty column cannot be checked.
            assert first is None or any(
                fingerprint(view, other, page) != original for other in chain([first], changed)
            ), f"{view.name}: {column} is not drawn"


def _changed(table: pd.DataFrame, column: str) -> Iterator[pd.DataFrame]:
    """Yield copies of a table with one cell changed, the first of each value before others."""
    values = table[column]
    non_empty = values[(values != "") & values.notna()]
    firsts = non_empty.drop_duplicates().index
    spread = non_empty.index[
        np.linspace(0, len(non_empty) - 1, min(TRIED, len(non_empty))).astype(int)
    ]
    for row in dict.fromkeys([*firsts[:6], *spread]):
        for value in _others(values, row):
            other = table.copy()
            other[column] = values.astype(object)
            other.loc[row, column] = value
            yield other.infer_objects()


def _others(values: pd.Series, row: int) -> list[object]:
    value = values[row]
    if not isinstance(value, str):
        return [value * 1.25 + 1, value * 0.25]
    if all(part.replace(".", "", 1).isdigit() for part in value.split()):
        return [f"{value} 1.2"]
    others = values[(values != value) & (values != "")]
    return [others.iloc[0] if len(others) else f"{value} changed"]


def fingerprint(view: View, table: pd.DataFrame, page: Page) -> object:
    """Return a hash of a picture's pixels; None for a table that cannot be drawn."""
    try:
        drawn = draw_table(view, table, page)
    except (KeyError, ValueError):
        return None
    drawn.canvas.draw()
    return hash(bytes(drawn.canvas.buffer_rgba()))
