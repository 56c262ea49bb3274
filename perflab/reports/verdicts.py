"""The verdicts of several runs in one table, for a terminal and for a document."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
from rich.table import Table
from rich.text import Text

from perflab.recordings import Run
from perflab.reports.findings import COLUMNS, readable_findings
from perflab.reports.markdown import to_markdown

__all__ = ["to_markdown", "to_terminal", "verdict_table"]

VERDICT_STYLES = {
    "reproduced": "green",
    "reproduced in direction": "green",
    "not reproduced": "red",
    "inconclusive": "yellow",
    "not testable here": "dim",
    "nothing published": "dim",
}
RIGHT = ("n", "adjusted p")
# A terminal is narrow; the Markdown table has them.
LEFT_OUT = ("response", "decision", "source")


def verdict_table(runs: Iterable[Run]) -> pd.DataFrame:
    """Return every finding of ``runs`` as text, one row per claim.

    Columns: experiment, backend, and those of :func:`readable_findings`. Runs of different
    backends stay apart; nothing is pooled.
    """
    parts = [
        readable_findings(run).assign(experiment=run.record.experiment, backend=run.record.backend)
        for run in runs
    ]
    columns = ["experiment", "backend", *COLUMNS]
    if not parts:
        return pd.DataFrame(columns=columns)
    return pd.concat(parts, ignore_index=True)[columns]


def to_terminal(table: pd.DataFrame, title: str = "Verdicts") -> Table:
    """Return a :func:`verdict_table` as a rich table, verdicts coloured."""
    drawn = Table(title=title, title_justify="left", show_lines=True)
    table = table.drop(columns=[name for name in LEFT_OUT if name in table.columns])
    for name in table.columns:
        right = name in RIGHT
        drawn.add_column(
            str(name),
            justify="right" if right else "left",
            no_wrap=right,
            overflow="fold",
            ratio=3 if name == "claim" else None,
        )
    for row in table.to_dict("records"):
        style = VERDICT_STYLES.get(str(row.get("verdict")), "")
        # Text, not markup: an interval like "[1.49, 1.70]" would be taken for a style.
        drawn.add_row(
            *(Text(str(value), style if name == "verdict" else "") for name, value in row.items())
        )
    return drawn
