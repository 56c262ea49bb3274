"""What clients cost and report as the load grows, and where the self-check refuses them."""

from __future__ import annotations

from typing import Any

import pandas as pd

from perflab.analysis.methods.quantiles import across_trials
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Intervals, Lines, Plane, Planes, Points
from perflab.figures.evidence import TYPICAL, estimate_row, trials_shown
from perflab.figures.looks import Look, appearance
from perflab.figures.page import Page
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
    how: dict[str, Any] = {"by": "client", "looks": looks}
    chart = Planes(
        TITLE,
        "Every point is one trial against the same server; hollow: the generator's self-check"
        " refused it. A line joins the typical values over the valid trials, with their 95%"
        " intervals (median; below 6 trials: geometric mean; an arrow: it goes on), where there are"
        " several.",
        layers=(
            Lines(TYPICAL, keyed=False, **how),
            Intervals(TYPICAL, along="y", beyond=BEYOND, among=(TRIAL,), lw=1.1,
                      size=0, keyed=False, **how),
            Points((TRIAL,), how={"linewidth": 0.0}, **how),
        ),
        planes=_planes,
        panel="response",
        x="at",
        height_in=3.1,
        further_in=3.1,
    )  # fmt: skip
    # Side by side: trials of different clients at one rate would hide each other.
    shifts = {name: 1.05 ** (place - (len(looks) - 1) / 2) for place, name in enumerate(looks)}
    return chart.draw(table.assign(at=table["rate"] * table["client"].map(shifts)), page)


def _planes(table: pd.DataFrame, _: Page) -> dict[str, Plane]:
    rates = {float(rate): f"{rate:,.0f}" for rate in sorted(table["rate"].unique())}
    x = Axis("offered load, requests per second", log=True, ticks=rates)
    return {response: Plane(x, Axis(label, log=True)) for response, label in PANELS.items()}


CLIENT_COST = View("client_cost", TITLE, client_cost_table, draw_client_cost, suits=varies_clients)
