"""Distribution of response time: every trial thin, all trials of a treatment thick."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.figures.canvas import LabFigure, finish, page_canvas
from perflab.figures.looks import Look
from perflab.figures.page import Page
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.points import draw_points
from perflab.figures.theme import FAINT, MUTED
from perflab.figures.view import View
from perflab.figures.words import tick_label
from perflab.percentiles import CENSORED, smallest_n
from perflab.recordings import Run

# Above this many treatments the curves hide each other: one panel each, the others in grey.
SHARED_PANEL = 3
TITLE = "response time, share of responses done within a time"
# Denser where the tails are.
SHARES = np.r_[0.0, 0.002, 0.005, np.linspace(0.01, 0.99, 99), 0.995, 0.998, 1.0]
MARKED = {0.50: "p50_ms", 0.95: "p95_ms", 0.99: "p99_ms"}
POOLED, MARKS = "all trials", "median of trials"
COLUMNS = ["treatment", "curve", "share_done", "response_ms"]


def latency_ecdf_table(run: Run) -> pd.DataFrame:
    """Return by which time each share of the requests of valid trials was done.

    Of successes, and of requests that were cut off before their end: a curve ends below 1 by their
    share.

    ``curve`` is a trial, all trials of a treatment together (where there are several), or the
    median of the trials' p50, p95 and p99 where every trial has responses enough for it. Curves are
    of what was observed: a time in them is that of a response, and no estimate of a percentile.
    """
    responses = _responses(run)
    parts = [
        _curve(str(name), curve, values)
        for name, own in responses.groupby("treatment", sort=False)
        for curve, values in _curves(own)
    ]
    if not parts:
        return pd.DataFrame(columns=COLUMNS)
    return pd.concat([*parts, _marks(run, list(responses["treatment"].unique()))])[COLUMNS]


def _responses(run: Run) -> pd.DataFrame:
    """Return treatment, trial_id and response_ms; infinite for what was cut off."""
    requests = run.requests()
    cut = requests["error"].isin(CENSORED)
    own = requests[((requests["error"] == "") | cut) & (requests["done_ns"] > 0)]
    waited_ms = (own["done_ns"] - own["planned_ns"]).astype(float) / 1e6
    return own.assign(response_ms=waited_ms.mask(own["error"] != "", np.inf))


def _curves(own: pd.DataFrame) -> Iterator[tuple[str, pd.Series[float]]]:
    trials = own.groupby("trial_id", sort=False)["response_ms"]
    yield from ((str(trial), values) for trial, values in trials)
    if trials.ngroups > 1:
        yield POOLED, own["response_ms"]


def _curve(treatment: str, curve: str, values: pd.Series[float]) -> pd.DataFrame:
    times = np.quantile(values.to_numpy(float), SHARES, method="inverted_cdf")
    named = {"treatment": treatment, "curve": curve, "share_done": SHARES, "response_ms": times}
    table = pd.DataFrame(named)
    finite: pd.DataFrame = table[np.isfinite(table["response_ms"])]
    return finite


def _marks(run: Run, treatments: list[str]) -> pd.DataFrame:
    trials = run.valid_trials()
    rows = []
    for name in treatments:
        own = trials[trials["treatment"] == name]
        answered = (own["requests"] - own["errors"]).min()
        rows += [
            {"treatment": name, "curve": MARKS, "share_done": share, "response_ms": at}
            for share, column in MARKED.items()
            if answered >= smallest_n(share) and np.isfinite(at := float(own[column].median()))
        ]
    return pd.DataFrame(rows, columns=COLUMNS)


def draw_latency_ecdf(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw the share of responses done within a time, by treatment."""
    looks = page.looks
    shared = len(looks) <= SHARED_PANEL
    count = 1 if shared else len(looks)
    grid = page.sheet.grid(count, across=2, least_in=1.6)
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=page.sheet.height_in(3.7)
        if shared
        else 0.6 + page.sheet.height_in(2.0) * grid.down,
        subtitle="How to read it: at a time on the axis below, a line is as high as the share of"
        " responses that were done by then; a line further left is faster. A thin line is one valid"
        " trial, a thick one all trials of a treatment pooled, where there are several. Points:"
        " median of the trials' p50, p95 and p99, where every trial has responses enough. Response"
        f" time runs from the planned instant to the last byte of successes; what was cut off is"
        f" never done.{_others(shared)}",
        key=_key(looks) if shared else (),
    )
    panels = figure.subplots(
        grid.down, grid.across, sharex=True, sharey=True, squeeze=False
    ).ravel()
    for spare in panels[count:]:
        spare.remove()
    for axes, name in zip(panels, looks, strict=False):
        shown = looks if shared else {name: looks[name]}
        _draw_panel(axes, table, shown)
        if not shared:
            axes.set_title(tick_label(looks[name].label, grid.room_in(3.0), 8, lines=3), size=8)
    _label_outer(panels[:count], grid.across)
    return finish(figure)


def _others(shared: bool) -> str:
    return "" if shared else " Grey: the pooled lines of the other treatments."


def _draw_panel(axes: Axes, table: pd.DataFrame, shown: Mapping[str, Look]) -> None:
    is_own, is_whole = table["treatment"].isin([*shown]), _is_whole(table)
    _lines(axes, table[~is_own & is_whole], "treatment", color=FAINT, lw=1.0)
    for (name, look), dashes in zip(shown.items(), _dashes(shown), strict=True):
        own = table[(table["treatment"] == name) & (table["curve"] != MARKS)]
        several = (own["curve"] == POOLED).any()
        _lines(axes, own[own["curve"] != POOLED], "curve", color=look.color, gid="trial",
               lw=0.5 if several else 1.0, alpha=0.45 if several else 1.0)  # fmt: skip
        _lines(axes, own[own["curve"] == POOLED], "curve", color=look.color, gid="pooled",
               lw=2.0, ls=dashes)  # fmt: skip
    marks = table[is_own & (table["curve"] == MARKS)]
    draw_points(axes, marks, "response_ms", "share_done", "treatment", shown, s=30, linewidth=0.8,
                zorder=5)  # fmt: skip
    axes.set_ylim(-0.02, 1.03)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1.0], ["0", "25", "50", "75", "100"])
    log_axis(axes, "x")
    axes.set_axisbelow(True)
    if not is_own.any():
        axes.text(0.5, 0.5, "no valid trial", transform=axes.transAxes, ha="center", color=MUTED)


def _is_whole(table: pd.DataFrame) -> pd.Series[bool]:
    """Return which rows are of a treatment's thickest line: pooled, or its only trial."""
    pooled = set(table.loc[table["curve"] == POOLED, "treatment"])
    alone = ~table["treatment"].isin(pooled) & (table["curve"] != MARKS)
    return alone | (table["curve"] == POOLED)


def _lines(axes: Axes, curves: pd.DataFrame, units: str, **how: Any) -> None:
    if len(curves):
        sns.lineplot(curves, x="response_ms", y="share_done", units=units, estimator=None,
                     sort=False, legend=False, ax=axes, **how)  # fmt: skip
        axes.set(xlabel="", ylabel="")


def _dashes(shown: Mapping[str, Look]) -> list[Any]:
    """Return a line style for each treatment of a panel: colours alone are alike in greyscale."""
    return ["-", (0, (4, 1.5)), (0, (1.5, 1))][: len(shown)]


def _label_outer(panels: np.ndarray, columns: int) -> None:
    for index, axes in enumerate(panels):
        if index % columns == 0:
            axes.set_ylabel("responses done, %")
        if index + columns >= len(panels):
            axes.set_xlabel("response time, ms (log)")
            axes.tick_params(axis="x", labelbottom=True)


def _key(looks: Mapping[str, Look]) -> list[Line2D]:
    return [
        Line2D([], [], color=look.color, lw=2, ls=dashes, marker=look.marker, ms=5.5, mec="white",
               label=tick_label(look.label, 6.4, 8, lines=1))
        for look, dashes in zip(looks.values(), _dashes(looks), strict=True)
    ]  # fmt: skip


LATENCY_ECDF = View("latency_ecdf", TITLE, latency_ecdf_table, draw_latency_ecdf)
