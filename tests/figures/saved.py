"""What holds of every saved figure: it is drawn from the file beside it, and from all of that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd

from perflab.figures import Page, View, draw_table, page_of, save_view
from perflab.figures.export import rendered
from perflab.figures.view import read_csv, reread
from perflab.recordings import Run
from perflab.reports.figures import views_of

# So many rows of a column are changed, spread over the table, before it is called unused.
TRIED = 24


def check_drawn_from_files(run: Run, names: Sequence[str], folder: Path) -> None:
    """Draw these views once more, from their saved tables: the pictures are those saved."""
    for view in (view for view in views_of(run) if view.name in names):
        svg, table = save_view(view, run, folder, ["svg"])
        told = read_csv(table.read_text())
        (_, again), _ = rendered(replace(view, table=lambda _, told=told: told), run, ["svg"])
        assert again == svg.read_bytes(), view.name


def check_columns_are_seen(run: Run, names: Sequence[str]) -> None:
    """Change single cells: of every column of these views some change is seen in the picture."""
    page = page_of(run)
    for view in (view for view in views_of(run) if view.name in names):
        table = reread(view.table(run))
        seen = fingerprint(view, table, page)
        for column in table:
            changed = _changed(table, str(column))
            first = next(changed, None)
            # Nothing can be told of a column in which nothing stands.
            assert first is None or any(
                fingerprint(view, each, page) != seen for each in chain([first], changed)
            ), f"{view.name}: {column} is not drawn"


def _changed(table: pd.DataFrame, column: str) -> Iterator[pd.DataFrame]:
    """Yield copies of a table with one cell changed, those first that occur only once."""
    own = table[column]
    told = own[(own != "") & own.notna()]
    firsts = told.drop_duplicates().index
    spread = told.index[np.linspace(0, len(told) - 1, min(TRIED, len(told))).astype(int)]
    for row in dict.fromkeys([*firsts[:6], *spread]):
        for value in _others(own, row):
            other = table.copy()
            other[column] = own.astype(object)
            other.loc[row, column] = value
            yield other.infer_objects()


def _others(own: pd.Series, row: int) -> list[object]:
    value = own[row]
    if not isinstance(value, str):
        return [value * 1.25 + 1, value * 0.25]
    if all(part.replace(".", "", 1).isdigit() for part in value.split()):
        return [f"{value} 1.2"]
    others = own[(own != value) & (own != "")]
    return [others.iloc[0] if len(others) else f"{value} changed"]


def fingerprint(view: View, table: pd.DataFrame, page: Page) -> object:
    """Return what a picture consists of; a table that cannot be drawn is another one, too."""
    try:
        drawn = draw_table(view, table, page)
    except (KeyError, ValueError):
        return None
    drawn.canvas.draw()
    return hash(bytes(drawn.canvas.buffer_rgba()))
