"""The distribution of response times by treatment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from perflab.analysis.typical_values import least_value
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import (
    Axis,
    Lines,
    Plane,
    Planes,
    Points,
)
from perflab.figures.charts.planes import EVERYWHERE
from perflab.figures.origin import Page
from perflab.figures.theme import FAINT, Style
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.statistics import CENSORED
from perflab.statistics.quantiles import smallest_n

# The curves of more treatments hide each other: then each has a panel, with the others in grey.
SHARED_PANEL = 3
ECDF_TITLE = "response time, share of responses done within a time"
# Denser in the tails.
SHARES = np.r_[0.0, 0.002, 0.005, np.linspace(0.01, 0.99, 99), 0.995, 0.998, 1.0]
MARKED = {0.50: "p50_ms", 0.95: "p95_ms", 0.99: "p99_ms"}
THIN, ALONE, THICK, OTHER = "thin", "alone", "thick", "other"
# A line style for each treatment of a shared panel: colours look alike in greyscale.
DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1.5, 1)))
SHARES_MARKED = {25.0 * n: str(25 * n) for n in range(5)}
POOLED, MARKS = "all trials", "median of trials"
ECDF_COLUMNS = ["treatment", "curve", "share_done", "response_ms"]


def latency_ecdf_table(run: Run) -> pd.DataFrame:
    """Return the time by which each share of the requests of valid trials was done.

    The requests are the successes and those that were cut off before their end; the share of the
    latter is missing at the top of a curve. ``curve`` is a trial, all trials of a treatment
    together (if there are several), or the median of the trials' p50, p95 and p99 if every trial
    has enough responses for it. Each time in a curve is that of a response, not an estimate of a
    percentile.
    """
    responses = _responses(run)
    parts = [
        _curve(str(name), curve, values)
        for name, rows in responses.groupby("treatment", sort=False)
        for curve, values in curves(rows, "response_ms")
    ]
    return pd.concat([*parts, _marks(run, list(responses["treatment"].unique()))])[ECDF_COLUMNS]


def _responses(run: Run) -> pd.DataFrame:
    """Return treatment, trial_id and response_ms, which is infinite for requests cut off."""
    requests = run.requests()
    cut = requests["error"].isin(CENSORED)
    ended = requests[((requests["error"] == "") | cut) & (requests["done_ns"] > 0)]
    waited_ms = (ended["done_ns"] - ended["planned_ns"]).astype(float) / 1e6
    return ended.assign(response_ms=waited_ms.mask(ended["error"] != "", np.inf))


def curves(times: pd.DataFrame, column: str) -> Iterator[tuple[str, pd.Series[float]]]:
    """Yield the times of each trial, and of all trials together if there are several."""
    trials = times.groupby("trial_id", sort=False)[column]
    yield from ((str(trial), values) for trial, values in trials)
    if trials.ngroups > 1:
        yield POOLED, times[column]


def _curve(treatment: str, curve: str, values: pd.Series[float]) -> pd.DataFrame:
    times = np.quantile(values.to_numpy(float), SHARES, method="inverted_cdf")
    columns = {"treatment": treatment, "curve": curve, "share_done": SHARES, "response_ms": times}
    table = pd.DataFrame(columns)
    finite: pd.DataFrame = table[np.isfinite(table["response_ms"])]
    return finite


def _marks(run: Run, treatments: list[str]) -> pd.DataFrame:
    trials = run.valid_trials()
    rows = []
    for name in treatments:
        group = trials[trials["treatment"] == name]
        answered = (group["requests"] - group["errors"]).min()
        rows += [
            {"treatment": name, "curve": MARKS, "share_done": share, "response_ms": ms}
            for share, column in MARKED.items()
            if answered >= smallest_n(share)
            and np.isfinite(ms := float(group[column].median()))
            and np.isnan(least_value(group, column))
        ]
    return pd.DataFrame(rows, columns=ECDF_COLUMNS)


def draw_latency_ecdf(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw the share of responses done within a time, by treatment."""
    shared = len(page.styles) <= SHARED_PANEL
    x = Axis("response time, ms (log)", log=True)
    y = Axis("responses done, %", ends=(-2, 103), ticks=SHARES_MARKED)
    of_each = {name: style.label for name, style in page.styles.items()}
    labels = {EVERYWHERE: ""} if shared else of_each
    tables = [_panel_table(table, name, page.styles) for name in labels]
    line: dict[str, Any] = {"by": "treatment", "unit": "curve"}
    dashes = dict(zip(page.styles, DASHES, strict=False)) if shared else {}
    chart = Planes(
        ECDF_TITLE,
        "How to read it: at a time on the axis below, a line is as high as the share of responses"
        " that were done by then; a line further left is faster. A thin line is one valid trial, a"
        " thick one all trials of a treatment pooled, where there are several. Points: median of"
        " the trials' p50, p95 and p99, where every trial has responses enough. Response time runs"
        " from the planned instant to the last byte of successes; what was cut off is never done."
        f"{' Grey: the pooled lines of the other treatments.' * (not shared)}",
        layers=(
            Lines((OTHER,), **{**line, "by": "", "unit": "treatment"}, color=FAINT,
                  how={"lw": 1.0}),
            Lines((ALONE,), how={"lw": 1.0, "gid": "trial"}, keyed=shared, **line),
            Lines((THIN,), how={"lw": 0.5, "alpha": 0.45, "gid": "trial"}, keyed=False, **line),
            *(
                Lines((THICK,), styles={name: style}, keyed=shared, **line,
                      how={"lw": 2.0, "ls": dashes.get(name, "-"), "gid": "pooled"})
                for name, style in page.styles.items()
            ),
            Points((MARKS,), by="treatment", keyed=False,
                   how={"s": 30, "linewidth": 0.8, "zorder": 5}),
        ),
        planes=lambda *_: {name: Plane(x, y, label) for name, label in labels.items()},
        panel="panel",
        height_in=3.7 if shared else 2.6,
        further_in=2.0,
        share_x=True,
        share_y=True,
        x="response_ms",
        y="percent",
    )  # fmt: skip
    return chart.draw(pd.concat(tables, ignore_index=True), page)


def _panel_table(table: pd.DataFrame, panel: str, styles: Mapping[str, Style]) -> pd.DataFrame:
    """Return the rows of one panel: its treatment's curves, and in grey those of the others."""
    marks, pooled = table["curve"] == MARKS, table["curve"] == POOLED
    # The main line of each treatment: the pooled one, or its only trial.
    whole = pooled | (~table["treatment"].isin(table.loc[pooled, "treatment"]) & ~marks)
    what = np.select([marks, pooled, whole], [MARKS, THICK, ALONE], THIN)
    in_panel = table["treatment"].isin([panel] if panel else [*styles])
    shown = table.assign(what=np.where(in_panel, what, OTHER), percent=100 * table["share_done"])
    return shown[in_panel | whole].assign(panel=panel) if in_panel.any() else shown.iloc[:0]


LATENCY_ECDF = View("latency_ecdf", ECDF_TITLE, latency_ecdf_table, draw_latency_ecdf)
