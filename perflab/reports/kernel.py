"""The kernel's part in a run as text: a row per treatment and number that moved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from perflab.analysis.trials.moved import HOST, kernel_part
from perflab.recordings import Run
from perflab.reports.numbers import MISSING, count, missing, number

COLUMNS = ("treatment", "whose", "what the kernel counted", "per trial", "n")
NOTE = (
    f"Whose: what is the {HOST}'s holds other processes too, and is of the whole load; what is a "
    "service's is its own. Per trial: median (smallest to largest)."
)


def readable_kernel(run: Run) -> pd.DataFrame:
    """Return one row of text per treatment and number that moved in some valid trial."""
    labels = {item.name: item.label or item.name for item in run.record.treatments}
    rows = [
        (labels[row["treatment"]], row["whose"], row["what"], _value(row), count(row["trials"]))
        for row in kernel_part(run).to_dict("records")
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _value(row: Mapping[Any, Any]) -> str:
    if missing(row["median"]):
        return MISSING
    typical, low, high = (_number(row[name]) for name in ("median", "smallest", "largest"))
    return typical if low == high else f"{typical} ({low} to {high})"


def _number(value: float) -> str:
    """Return what was counted as it was counted, and a rate or a share with three digits."""
    return count(value) if float(value).is_integer() else number(value)
