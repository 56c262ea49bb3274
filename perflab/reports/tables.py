"""Tables that a page is wide enough for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from perflab.analysis.trials.moved import HOST, kernel_part
from perflab.recordings import Run
from perflab.reports.findings import ADJUSTED, COUNTS, readable_summary
from perflab.reports.numbers import MISSING, count, missing, number

MOST_ACROSS = 4
BRIEF = ("claim", "response", "published", "measured [95%]", "n", ADJUSTED, "verdict")

KERNEL = ("treatment", "whose", "what the kernel counted", "per trial", "n")
NOTE = (
    f"Whose: what is the {HOST}'s holds other processes too, and is of the whole load; what is a "
    "service's is its own. Per trial: median (smallest to largest)."
)


def brief(findings: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of a table of findings that fit a page; sentences tell the others.

    Why there is no number, or none of some blocks, stands with them where there is such a reason.
    """
    wanted = [*BRIEF]
    if (findings["left out"] != MISSING).any():
        wanted.append("left out")
    names = list(map(str, findings.columns))
    return findings[[name for name in names if name in wanted or name.startswith(ADJUSTED)]]


def measured_tables(run: Run) -> list[pd.DataFrame]:
    """Return what each treatment did: treatments side by side, a few in each table."""
    table = readable_summary(run)
    counts = [name for name in COUNTS if name in table]
    measured = [name for name in table.columns if name not in ("treatment", *counts)]
    # What nothing was measured of has no row.
    rows = [*counts, *(name for name in measured if (table[name] != MISSING).any())]
    across = table.set_index("treatment")[rows].T
    across.index.name = "typical [95%]"
    groups = range(0, across.shape[1], MOST_ACROSS)
    return [across.iloc[:, n : n + MOST_ACROSS].reset_index() for n in groups]


def readable_kernel(run: Run) -> pd.DataFrame:
    """Return one row of text per treatment and number that moved in some valid trial."""
    labels = {item.name: item.label or item.name for item in run.record.treatments}
    rows = [
        (labels[row["treatment"]], row["whose"], row["what"], _value(row), count(row["trials"]))
        for row in kernel_part(run).to_dict("records")
    ]
    return pd.DataFrame(rows, columns=list(KERNEL))


def _value(row: Mapping[Any, Any]) -> str:
    if missing(row["median"]):
        return MISSING
    typical, low, high = (_number(row[name]) for name in ("median", "smallest", "largest"))
    return typical if low == high else f"{typical} ({low} to {high})"


def _number(value: float) -> str:
    """Return what was counted as it was counted, and a rate or a share with three digits."""
    return count(value) if float(value).is_integer() else number(value)
