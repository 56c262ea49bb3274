"""Distribution of response time: every trial thin, all trials of a treatment thick."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perflab.analysis import smallest_n
from perflab.figures.canvas import canvas_of, finish
from perflab.figures.looks import Look, looks
from perflab.figures.nothing import empty_figure
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.theme import FAINT, MUTED, styled
from perflab.figures.words import tick_label
from perflab.recordings import Run

# Above this many treatments the curves hide each other: one panel each, the others in grey.
SHARED_PANEL = 3
TITLE = "response time, share of responses done within a time"
TABLE_GRID = np.r_[0.001, 0.01, np.arange(0.05, 0.951, 0.05), 0.99, 0.999]
CURVE_GRID = np.r_[0.0, np.linspace(0.002, 0.998, 250), 1.0]
MARKED = {0.50: "p50_ms", 0.95: "p95_ms", 0.99: "p99_ms"}


def table(run: Run) -> pd.DataFrame:
    """Return the pooled quantiles of response time on a grid: treatment, n, quantile, ms.

    Only those that the number of responses can support (p99.9 from 3,688 on).
    """
    parts = [
        pd.DataFrame(
            {
                "treatment": name,
                "label": looks(run.record)[name].label,
                "requests": len(values),
                "quantile": grid,
                "response_ms": np.quantile(values, grid),
            }
        )
        for name, values in _pooled(_responses(run)).items()
        for grid in [_supported(len(values))]
    ]
    empty = pd.DataFrame(columns=["treatment", "label", "requests", "quantile", "response_ms"])
    return pd.concat(parts, ignore_index=True) if parts else empty


@styled
def latency_ecdf(run: Run) -> Figure:
    """Draw the share of responses done within a time, by treatment, for valid trials."""
    look = looks(run.record)
    responses = _responses(run)
    if responses.empty:
        return empty_figure(run, TITLE)
    shared = len(look) <= SHARED_PANEL
    panels = 1 if shared else len(look)
    columns = 1 if shared else 2
    grid_rows = -(-panels // columns)
    figure = canvas_of(
        run,
        TITLE,
        plot_height_in=3.7 if shared else 0.6 + 2.0 * grid_rows,
        subtitle="How to read it: at a time on the axis below, a line is as high as the share of"
        " responses that were done by then; a line further left is faster. A thin line is one valid"
        " trial, a thick one all trials of a treatment pooled, where there are several. Points:"
        " median of the trials' p50, p95 and p99, where every trial has responses enough. Response"
        f" time runs from the planned instant to the last byte of successes.{_others(shared)}",
        key=_key(look) if shared else (),
    )
    axes = figure.subplots(grid_rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for spare in axes[panels:]:
        spare.remove()
    for panel, name in zip(axes, look, strict=False):
        shown = look if shared else {name: look[name]}
        _draw_panel(panel, run, responses, shown, look)
        if not shared:
            panel.set_title(tick_label(look[name].label, 3.0, 8, lines=3), size=8)
    _label_outer(axes[:panels], columns)
    return finish(figure)


def _others(shared: bool) -> str:
    return "" if shared else " Grey: the pooled lines of the other treatments."


def _supported(n: int) -> np.ndarray:
    supported: np.ndarray = TABLE_GRID[[smallest_n(float(share)) <= n for share in TABLE_GRID]]
    return supported


def _responses(run: Run) -> pd.DataFrame:
    """Return treatment, trial_id and response_ms of the successes of valid trials."""
    valid = run.valid_trials()
    columns = ["treatment", "trial_id", "response_ms"]
    if not len(valid):
        return pd.DataFrame({name: pd.Series(dtype=object) for name in columns})
    requests = run.requests(trial_ids=list(valid["trial_id"]))
    good = requests[(requests["error"] == "") & (requests["done_ns"] > 0)]
    waited_ns = good["done_ns"] - good["planned_ns"]
    return good.assign(response_ms=waited_ns.astype(float) / 1e6)[columns]


def _pooled(responses: pd.DataFrame) -> dict[str, np.ndarray]:
    return {
        str(name): group["response_ms"].to_numpy(float)
        for name, group in responses.groupby("treatment", sort=False)
    }


def _draw_panel(
    axes: Axes,
    run: Run,
    responses: pd.DataFrame,
    shown: Mapping[str, Look],
    everyone: Mapping[str, Look],
) -> None:
    pooled = _pooled(responses)
    dashes = _dashes(shown)
    for name in everyone:
        if name not in shown and name in pooled:
            axes.plot(np.quantile(pooled[name], CURVE_GRID), CURVE_GRID, color=FAINT, lw=1.0)
    for name, look in shown.items():
        if name not in pooled:
            continue
        trials = responses[responses["treatment"] == name].groupby("trial_id")["response_ms"]
        alone = trials.ngroups == 1
        for _, values in trials:
            axes.plot(np.quantile(values, CURVE_GRID), CURVE_GRID, color=look.color,
                      lw=1.0 if alone else 0.5, alpha=1.0 if alone else 0.45,
                      gid="trial")  # fmt: skip
        if not alone:
            axes.plot(np.quantile(pooled[name], CURVE_GRID), CURVE_GRID, color=look.color, lw=2.0,
                      ls=dashes[name], gid="pooled")  # fmt: skip
        _mark(axes, run, name, look)
    axes.set_ylim(-0.02, 1.03)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1.0], ["0", "25", "50", "75", "100"])
    log_axis(axes, "x")
    axes.set_axisbelow(True)
    if not any(name in pooled for name in shown):
        axes.text(0.5, 0.5, "no valid trial", transform=axes.transAxes, ha="center", color=MUTED)


def _dashes(shown: Mapping[str, Look]) -> dict[str, Any]:
    """Return a line style for each treatment of a panel: colours alone are alike in greyscale."""
    return dict(zip(shown, ("-", (0, (4, 1.5)), (0, (1.5, 1))), strict=False))


def _mark(axes: Axes, run: Run, name: str, look: Look) -> None:
    trials = run.valid_trials()
    trials = trials[trials["treatment"] == name]
    for share, column in MARKED.items():
        if (trials["requests"] - trials["errors"] < smallest_n(share)).any():
            continue
        at = float(trials[column].median())
        if np.isfinite(at):
            axes.plot(
                [at],
                [share],
                ls="",
                marker=look.marker,
                ms=5.5,
                mfc=look.color,
                mec="white",
                mew=0.8,
                zorder=5,
            )


def _label_outer(axes: np.ndarray, columns: int) -> None:
    for index, panel in enumerate(axes):
        if index % columns == 0:
            panel.set_ylabel("responses done, %")
        if index + columns >= len(axes):
            panel.set_xlabel("response time, ms (log)")
            panel.tick_params(axis="x", labelbottom=True)


def _key(look: Mapping[str, Look]) -> list[Line2D]:
    dashes = _dashes(look)
    return [
        Line2D(
            [],
            [],
            color=each.color,
            lw=2,
            ls=dashes[name],
            marker=each.marker,
            ms=5.5,
            mec="white",
            label=tick_label(each.label, 6.4, 8, lines=1),
        )
        for name, each in look.items()
    ]
