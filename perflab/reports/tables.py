"""Tables that a page is wide enough for."""

from __future__ import annotations

import pandas as pd

from perflab.recordings import Run
from perflab.reports.findings import ADJUSTED, COUNTS, readable_summary
from perflab.reports.numbers import MISSING

MOST_ACROSS = 4
BRIEF = ("claim", "response", "published", "measured [95%]", "n", ADJUSTED, "verdict")


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
