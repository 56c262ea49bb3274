"""What clients cost and report as the load grows, and where the self-check refuses them."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.analysis.methods.quantiles import across_trials
from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas, panels
from perflab.figures.evidence import TYPICAL, estimate_row, trials_shown
from perflab.figures.intervals import draw_interval, reach
from perflab.figures.looks import Look, appearance
from perflab.figures.page import Page
from perflab.figures.points import draw_points
from perflab.figures.theme import MUTED
from perflab.figures.view import View
from perflab.recordings import Run

TITLE = "what each client costs and reports as the load grows"
PANELS = {
    "p95_ms": "reported p95, ms (log)",
    "client_cpu_us_per_request": "client CPU per request, us (log)",
}
TRIAL = "trial"
# An interval may reach so many times beyond the trials.
BEYOND = 3.0
COLUMNS = ["response", "what", "client", "rate", "state", "value", "low", "high"]


def client_cost_table(run: Run) -> pd.DataFrame:
    """Return what each client reports and costs at each rate, for every trial that did not fail.

    ``what`` is a trial (with its state), or which statistic a typical value of several valid trials
    is, with its 95% interval.
    """
    trials = trials_shown(run)
    levels = {item.name: item.levels for item in run.record.treatments}
    trials = trials.assign(
        what=TRIAL,
        client=[levels[name]["client"] for name in trials["treatment"]],
        rate=[float(levels[name]["rate"]) for name in trials["treatment"]],
    )
    place = trials["client"].map(run.record.factors["client"].index)
    trials = trials.assign(place=place).sort_values(["place", "rate", "block"])
    parts = [part for response in PANELS for part in _of(response, trials)]
    return pd.concat(parts, ignore_index=True).reindex(columns=COLUMNS)


def _of(response: str, trials: pd.DataFrame) -> list[pd.DataFrame]:
    own = trials.assign(response=response, value=trials[response].astype(float)).dropna(
        subset=["value"]
    )
    valid = own[own["state"] == "valid"]
    typical = [
        {"client": client, "rate": rate, **estimate_row(across_trials(each["value"].to_numpy()))}
        for (client, rate), each in valid.groupby(["client", "rate"], sort=False)
        if len(each) > 1
    ]
    return [own, pd.DataFrame(typical).assign(response=response)]


def varies_clients(run: Run) -> bool:
    """Return whether the factors of a run are client and rate."""
    return {"client", "rate"} <= set(run.record.factors)


def draw_client_cost(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw every trial's p95 and CPU cost against the offered rate."""
    clients = enumerate(table["client"].unique())
    looks = {name: Look(*appearance(place), name) for place, name in clients}
    grid = page.sheet.grid(len(PANELS), across=2, least_in=2.0)
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=page.sheet.height_in(3.1) * grid.down,
        subtitle="Every point is one trial against the same server; hollow: the generator's"
        " self-check refused it. A line joins the typical values over the valid trials, with their"
        " 95% intervals (median; below 6 trials: geometric mean; an arrow: it goes on), where there"
        " are several.",
        key=_key(looks),
    )
    # Side by side: trials of different clients at one rate would hide each other.
    shifts = {name: 1.05 ** (place - (len(looks) - 1) / 2) for place, name in enumerate(looks)}
    table = table.assign(at=table["rate"] * table["client"].map(shifts))
    for axes, (response, label) in zip(panels(figure, grid), PANELS.items(), strict=True):
        _draw(axes, table[table["response"] == response], looks)
        rates = sorted(table["rate"].unique())
        axes.set_xticks(rates, [f"{rate:,.0f}" for rate in rates])
        axes.xaxis.minorticks_off()
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_xlabel("offered load, requests per second")
        axes.set_ylabel(label)
        only_grid(axes, "y")
    return finish(figure)


def _draw(axes: Axes, own: pd.DataFrame, looks: Mapping[str, Look]) -> None:
    axes.set(xscale="log", yscale="log")
    typical = own[own["what"].isin(TYPICAL)]
    colors = {name: look.color for name, look in looks.items()}
    if len(typical):
        sns.lineplot(typical, x="at", y="value", hue="client", hue_order=[*looks], palette=colors,
                     estimator=None, legend=False, lw=1.4, zorder=2, ax=axes)  # fmt: skip
    known = typical[typical["low"].notna()]
    trials = own[own["what"] == TRIAL]
    within = reach(trials["value"], BEYOND)
    for at, low, high, client in known[["at", "low", "high", "client"]].itertuples(index=False):
        draw_interval(axes, (low, high), at, within, "y", color=colors[client], lw=3.0, alpha=0.35,
                      zorder=1.5, gid="interval")  # fmt: skip
    draw_points(axes, trials, "at", "value", "client", looks, linewidth=0.0)


def _key(looks: Mapping[str, Look]) -> list[Line2D]:
    handles = [
        Line2D([], [], color=look.color, marker=look.marker, ms=4.5, lw=1.4, label=look.label)
        for look in looks.values()
    ]
    refused = Line2D([], [], ls="", marker="o", ms=4.5, mfc="white", mec=MUTED, label="refused")
    return [*handles, refused]


CLIENT_COST = View("client_cost", TITLE, client_cost_table, draw_client_cost, suits=varies_clients)
