"""``perflab show`` of a load: its recorded requests in few numbers."""

from __future__ import annotations

import math
from pathlib import Path

from rich.table import Table

from perflab.cli.terminal import console as make_console
from perflab.cli.terminal import print_table

REQUESTS = "requests.parquet"


def is_load(reference: str) -> bool:
    """Return whether a reference is the folder or file of a load, and not a run."""
    path = Path(reference)
    return path.suffix == ".parquet" or (path / REQUESTS).is_file()


def show_requests(place: str, windows: int) -> None:
    """Print percentiles with intervals, windows of time, and where the time went.

    Successes of the measured stage only. Percentiles that the sample cannot support are left out;
    those that requests without an end could move are bounds (>=).
    """
    import pandas as pd

    from perflab.analysis.trials.requests import summarise
    from perflab.reports.numbers import MISSING, measured, number

    path = Path(place)
    found = summarise(path / REQUESTS if path.is_dir() else path, windows)
    console = make_console()
    console.print(f"{found.requests:,} measured requests, {found.errors:,} errors")
    table = Table("time", "percentile", "ms [95%]")
    for row in found.percentiles.to_dict("records"):
        value = measured(row["value_ms"], row["low_ms"], row["high_ms"])
        if not math.isnan(row["at_least_ms"]):
            value = f">= {number(row['at_least_ms'])}"
        shown = value if value != MISSING else "n too small"
        table.add_row(row["time"], f"p{row['share'] * 100:g}", shown)
    print_table(table)
    console.print()
    print_table(_plain(found.windows, number))
    console.print()
    parts: pd.DataFrame = found.parts.pivot(index="part", columns="band", values="mean_ms")
    wide = parts.reindex(index=found.parts["part"].unique(), columns=found.parts["band"].unique())
    print_table(_plain(wide.rename_axis("part, mean ms").reset_index(), number))


def _plain(rows: object, number: object) -> Table:
    import pandas as pd

    assert isinstance(rows, pd.DataFrame)
    assert callable(number)
    table = Table(*map(str, rows.columns))
    for row in rows.itertuples(index=False, name=None):
        table.add_row(*(value if isinstance(value, str) else number(value) for value in row))
    return table
