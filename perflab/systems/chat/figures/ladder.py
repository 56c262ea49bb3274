"""The ladder: measured and published percentiles of every rung, beside the study's targets."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator

from perflab.analysis import Estimate
from perflab.figures.canvas import canvas_of, finish, only_grid
from perflab.figures.evidence import typical_values
from perflab.figures.looks import PALETTE, looks
from perflab.figures.nothing import empty_figure
from perflab.figures.plots import rows
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.theme import FAINT, INK, MUTED, styled
from perflab.recordings import Run, published
from perflab.systems.chat.analysis.users_held import targets_ms

TITLE = "delivery latency, rung by rung"
BEYOND = 3.0
SHARES = (90, 95, 99)
COLUMNS = [
    "rung", "block", "trial_id", "state", "messages_per_s", "plateau_cpu_share_chat",
    *(f"delivery_p{share}_ms" for share in SHARES),
]  # fmt: skip


def table(run: Run) -> pd.DataFrame:
    """Return one row per measured trial: rung, volume, CPU on the plateau, and percentiles."""
    trials = run.trials()
    trials = trials[~trials["superseded"].astype(bool) & (trials["state"] != "failed")]
    rungs = {item.name: item.levels.get("rung", "") for item in run.record.treatments}
    return trials.assign(rung=trials["treatment"].map(rungs)).reindex(columns=COLUMNS)


@styled
def ladder(run: Run) -> Figure | None:
    """Draw three percentiles per rung; None for a run that has no rungs."""
    if "rung" not in run.record.factors:
        return None
    look = looks(run.record)
    trials = run.trials()
    trials = trials[~trials["superseded"].astype(bool) & (trials["state"] != "failed")]
    if not np.isfinite(trials[list(targets_ms())]).any(axis=None):
        return empty_figure(run, TITLE)
    figure = canvas_of(
        run,
        TITLE,
        plot_height_in=0.6 + len(look) * rows.height_in(look, 0.34),
        subtitle="Points: trials (hollow: refused). Bar: typical value over valid trials, with its"
        " 95% interval where n allows one (an arrow: it goes on); none of a single trial. Dashed:"
        " the study's targets. All deliveries of a trial.",
        key=_key(run),
    )
    limits = targets_ms()
    panels = figure.subplots(1, len(SHARES), sharey=True)
    for axes, share in zip(panels, SHARES, strict=True):
        places = rows.frame(axes, look)
        axes.axvline(limits[f"delivery_p{share}_ms"], color=MUTED, lw=1.0, ls=(0, (4, 2)), zorder=1)
        _draw(axes, run, trials, share, places)
        axes.set_xlabel(f"p{share}, ms (log)")
        only_grid(axes, "x")
    return finish(figure)


def _draw(axes: Axes, run: Run, trials: pd.DataFrame, share: int, places: dict[str, int]) -> None:
    column = f"delivery_p{share}_ms"
    valid = trials["state"] == "valid"
    height = trials["treatment"].map(places).astype(float)
    for chosen, face in ((valid, PALETTE[0]), (~valid, "white")):
        axes.scatter(trials.loc[chosen, column], height[chosen] + 0.14, s=12, c=face,
                     edgecolors=PALETTE[0], linewidths=0.8, zorder=3)  # fmt: skip
    for name, estimate in typical_values(run, column).items():
        if estimate.n > 1:
            _draw_typical(axes, estimate, places[name] - 0.15, trials[column])
    for name, value in _published(run, share).items():
        axes.scatter([value], [places[name] - 0.15], marker="D", s=16, c="white",
                     edgecolors=PALETTE[1], linewidths=1.1, zorder=4)  # fmt: skip
    if np.isfinite(trials[column]).any():
        log_axis(axes, "x")
        # Three panels share the width: numbers at the tens, and at the threes where few are seen.
        low, high = axes.get_xlim()
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0) if high < 40 * low else (1.0,)))
    for row in list(places.values())[:-1]:
        axes.axhline(row + 0.5, color=FAINT, lw=0.6, zorder=0)


def _draw_typical(axes: Axes, estimate: Estimate, y: float, of_trials: pd.Series[float]) -> None:
    """Draw a typical value; an interval of few trials may span decades and ends in an arrow."""
    axes.plot([estimate.value] * 2, [y - 0.17, y + 0.17], color=INK, lw=2)
    if not estimate.supported:
        return
    least, most = of_trials.min() / BEYOND, of_trials.max() * BEYOND
    ends = [max(estimate.low, least), min(estimate.high, most)]
    axes.plot(ends, [y, y], color=INK, lw=1.1)
    for end, full, marker in zip(ends, (estimate.low, estimate.high), "<>", strict=True):
        if end != full:
            axes.plot([end], [y], marker=marker, ms=3.5, color=INK)


def _published(run: Run, share: int) -> dict[str, float]:
    """Return the published percentile of the treatments that are a row of the study's table."""
    known = published("chat")
    own = known[known["measure"] == f"p{share}_latency"]
    values = dict(zip(own["scenario"], own["value"].astype(float), strict=True))
    return {
        item.name: values[item.levels["scenario"]]
        for item in run.record.treatments
        if item.levels.get("scenario") in values
    }


def _key(run: Run) -> list[Line2D]:
    handles = [
        Line2D([], [], ls="", marker="o", ms=4, color=PALETTE[0], label="trial"),
        Line2D([], [], color=INK, lw=2, label="typical value"),
        Line2D([], [], color=MUTED, lw=1.0, ls=(0, (4, 2)), label="target"),
    ]
    if any(_published(run, share) for share in SHARES):
        handles.append(
            Line2D([], [], ls="", marker="D", ms=4.5, mfc="white", mec=PALETTE[1],
                   label="published")
        )  # fmt: skip
    return handles
