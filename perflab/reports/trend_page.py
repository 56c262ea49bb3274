"""The words around the figure of a trend, and its origin as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perflab.figures.origin import perflab_version
from perflab.figures.page import Page
from perflab.numerals import counted

if TYPE_CHECKING:
    from perflab.reports.trends import Trend


def page_of_trend(trend: Trend) -> Page:
    """Return the page of a figure that is of no run alone."""
    table = trend.table
    runs = list(dict.fromkeys(table["run"]))
    commits = list(dict.fromkeys(table["commit"]))
    notes = [*trend.notes]
    if trend.problems:
        notes.append(f"left out as damaged: {counted(len(trend.problems), 'run or trial')}")
    told = f"{counted(len(runs), 'run')}, {runs[0]} to {runs[-1]}"
    code = f"{counted(len(commits), 'commit')} · perflab {perflab_version()}"
    return Page(
        experiment=trend.experiment,
        title="effects over runs",
        footer="\n".join([told, code, *notes]),
        origin={
            "runs": runs,
            "experiment": trend.experiment,
            "commits": commits,
            "changes": trend.changes[["contrast", "first_run"]].to_dict("records"),
            "perflab": perflab_version(),
        },
        looks={},
        pairs=(),
        nothing="",
    )
