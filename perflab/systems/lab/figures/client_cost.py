"""What clients cost and report as the load grows, and where the self-check refuses them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perflab.analysis import across_trials
from perflab.figures.canvas import canvas_of, finish, only_grid
from perflab.figures.looks import MARKERS, PALETTE
from perflab.figures.theme import MUTED, styled
from perflab.recordings import Run

PANELS = {
    "p95_ms": "reported p95, ms (log)",
    "client_cpu_us_per_request": "client CPU per request, us (log)",
}
COLUMNS = ["client", "rate", "block", "trial_id", "state", "throughput_rps", *PANELS]


def table(run: Run) -> pd.DataFrame:
    """Return one row per measured trial of a run whose factors are client and rate; else none."""
    if not {"client", "rate"} <= set(run.record.factors):
        return pd.DataFrame(columns=COLUMNS)
    trials = run.trials()
    trials = trials[~trials["superseded"].astype(bool) & (trials["state"] != "failed")]
    levels = {item.name: item.levels for item in run.record.treatments}
    return (
        trials.assign(
            client=[levels[name]["client"] for name in trials["treatment"]],
            rate=[float(levels[name]["rate"]) for name in trials["treatment"]],
        )
        .reindex(columns=COLUMNS)
        .sort_values(["client", "rate", "block"], ignore_index=True)
    )


@styled
def client_cost(run: Run) -> Figure | None:
    """Draw every trial's p95 and CPU cost against the offered rate; None for other runs."""
    trials = table(run)
    if trials.empty:
        return None
    clients = list(run.record.factors["client"])
    figure = canvas_of(
        run,
        "what each client costs and reports as the load grows",
        plot_height_in=3.1,
        subtitle="Every point is one trial against the same server; hollow: the generator's"
        " self-check refused it. A line joins the typical values over the valid trials, with their"
        " 95% intervals (median; below 6 trials: geometric mean), where there are several.",
        key=_key(clients),
    )
    for axes, (column, label) in zip(figure.subplots(1, 2), PANELS.items(), strict=True):
        for number, client in enumerate(clients):
            _draw(axes, trials[trials["client"] == client], column, number, len(clients))
        axes.set_xscale("log")
        axes.set_yscale("log")
        rates = sorted(trials["rate"].unique())
        axes.set_xticks(rates, [f"{rate:,.0f}" for rate in rates])
        axes.xaxis.minorticks_off()
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_xlabel("offered load, requests per second")
        axes.set_ylabel(label)
        only_grid(axes, "y")
    return finish(figure)


def _draw(axes: Axes, trials: pd.DataFrame, column: str, number: int, clients: int) -> None:
    color, marker = PALETTE[number % len(PALETTE)], MARKERS[number % len(MARKERS)]
    # Side by side: trials of different clients at one rate would hide each other.
    shift = 1.05 ** (number - (clients - 1) / 2)
    valid = trials["state"] == "valid"
    typical = {
        rate * shift: across_trials(own[column].to_numpy(float))
        for rate, own in trials[valid].groupby("rate")
    }
    several = {at: each for at, each in typical.items() if each.n > 1}
    axes.plot([*several], [each.value for each in several.values()], color=color, lw=1.4, zorder=2)
    for at, each in several.items():
        if each.supported:
            axes.plot([at, at], [each.low, each.high], color=color, lw=3.0, alpha=0.35, zorder=1.5,
                      gid="interval")  # fmt: skip
    for chosen, face in ((valid, color), (~valid, "white")):
        own = trials[chosen & np.isfinite(trials[column])]
        axes.scatter(
            own["rate"] * shift,
            own[column],
            marker=marker,
            s=20,
            c=face,
            edgecolors=color,
            linewidths=1.0,
            zorder=3,
        )


def _key(clients: list[str]) -> list[Line2D]:
    handles = [
        Line2D([], [], color=PALETTE[n % len(PALETTE)], marker=MARKERS[n % len(MARKERS)], ms=4.5,
               lw=1.4, label=client)
        for n, client in enumerate(clients)
    ]  # fmt: skip
    refused = Line2D([], [], ls="", marker="o", ms=4.5, mfc="white", mec=MUTED, label="refused")
    return [*handles, refused]
