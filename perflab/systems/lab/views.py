"""The views of runs in which the lab checks itself and its clients."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd

from perflab.figures import OF_REQUESTS
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import (
    Axis,
    Intervals,
    Lines,
    Marks,
    Plane,
    Planes,
    Points,
    RowChart,
    Rules,
)
from perflab.figures.origin import TYPICAL, Page, estimate_row, trials_shown
from perflab.figures.plots.effect_rows import limits
from perflab.figures.theme import INK, PALETTE, Look, appearance
from perflab.figures.view import View, varies
from perflab.recordings import Run
from perflab.statistics.quantiles import across_trials
from perflab.systems.lab.resolution import FACTOR, known_effects

CLIENT_TITLE = "what each client costs and reports as the load grows"
PANELS = {
    "p95_ms": "reported p95, ms (log)",
    "client_cpu_us_per_request": "client CPU per request, us (log)",
}
TRIAL = "trial"
# An interval may reach this many times beyond the trials.
BEYOND = 3.0
CLIENT_COLUMNS = ["response", "what", "client", "rate", "state", "value", "low", "high"]


def client_cost_table(run: Run) -> pd.DataFrame:
    """Return what each client reports and costs at each rate, for every trial that did not fail.

    ``what`` is a trial (with its state), or the statistic of a typical value of several valid
    trials, with its 95% interval.
    """
    trials = trials_shown(run)
    levels = {treatment.name: treatment.levels for treatment in run.record.treatments}
    trials = trials.assign(
        what=TRIAL,
        client=[levels[name]["client"] for name in trials["treatment"]],
        rate=[float(levels[name]["rate"]) for name in trials["treatment"]],
    )
    place = trials["client"].map(run.record.factors["client"].index)
    trials = trials.assign(place=place).sort_values(["place", "rate", "block"])
    parts = [part for response in PANELS for part in _of_response(response, trials)]
    return pd.concat(parts, ignore_index=True).reindex(columns=CLIENT_COLUMNS)


def _of_response(response: str, trials: pd.DataFrame) -> list[pd.DataFrame]:
    points = trials.assign(response=response, value=trials[response].astype(float)).dropna(
        subset=["value"]
    )
    valid = points[points["state"] == "valid"]
    typical = [
        {"client": client, "rate": rate, **estimate_row(across_trials(group["value"].to_numpy()))}
        for (client, rate), group in valid.groupby(["client", "rate"], sort=False)
        if len(group) > 1
    ]
    return [points, pd.DataFrame(typical).assign(response=response)]


def draw_client_cost(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw every trial's p95 and CPU cost against the offered rate."""
    clients = enumerate(table["client"].unique())
    looks = {name: Look(*appearance(place), name) for place, name in clients}
    style: dict[str, Any] = {"by": "client", "looks": looks}
    rates = {float(rate): f"{rate:,.0f}" for rate in sorted(table["rate"].unique())}
    x = Axis("offered load, requests per second", log=True, ticks=rates)
    chart = Planes(
        CLIENT_TITLE,
        "Every point is one trial against the same server; hollow: the generator's self-check"
        " refused it. A line joins the typical values over the valid trials, with their 95%"
        " intervals (median; below 6 trials: geometric mean; an arrow: it goes on), where there are"
        " several.",
        layers=(
            Lines(TYPICAL, keyed=False, **style),
            Intervals(TYPICAL, along="y", beyond=BEYOND, among=(TRIAL,), lw=1.1,
                      size=0, keyed=False, **style),
            Points((TRIAL,), how={"linewidth": 0.0}, **style),
        ),
        planes={name: Plane(x, Axis(label, log=True)) for name, label in PANELS.items()},
        panel="response",
        x="at",
        height_in=3.1,
        further_in=3.1,
    )  # fmt: skip
    # Clients are shifted sideways, because their trials at one rate would hide each other.
    shifts = {name: 1.05 ** (place - (len(looks) - 1) / 2) for place, name in enumerate(looks)}
    return chart.draw(table.assign(at=table["rate"] * table["client"].map(shifts)), page)


CLIENT_COST = View(
    "client_cost", CLIENT_TITLE, client_cost_table, draw_client_cost, varies("client", "rate")
)


MEASURED, TRUTH, SAME = "measured", "truth", "same"
LOOKS = {MEASURED: Look(PALETTE[0], "o", MEASURED)}
# The axis reaches at least this far on both sides of 1, even if all copies are alike.
LEAST = 0.02
EXPERIMENT = "lab_check"
EFFECT_TITLE = "what was planted, and what the lab found"
EFFECT_COLUMNS = ["service", "expected", "estimate", "low", "high"]


def draw_known_effects(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw each service's response over the first copy's, with its true value."""
    within = _shown(table)
    chart = RowChart(
        EFFECT_TITLE,
        "Mean response time against that of copy A1: estimate over all blocks with its 95% interval"
        " (an arrow: it goes on). A copy is the same service; the others work longer by a known"
        " share.",
        layers=(
            Rules((SAME,), ls="-"),
            Intervals((MEASURED,), within=within, by="what", looks=LOOKS, size=5),
            Marks((TRUTH,), "|", TRUTH, color=INK, size=13),
        ),
        panels={"": Axis("ratio of mean response time", ends=within)},
        row="service",
        value="estimate",
        labels=_labels,
        row_in=0.3,
    )
    parts = [
        table.assign(what=MEASURED),
        table.assign(what=TRUTH, estimate=table["expected"]),
        pd.DataFrame([{"what": SAME, "estimate": 1.0}]),
    ]
    return chart.draw(pd.concat(parts, ignore_index=True), page)


def _shown(table: pd.DataFrame) -> tuple[float, float]:
    values = table[["estimate", "expected"]].to_numpy(float).ravel() - 1
    ends = table[["low", "high"]].to_numpy(float).ravel() - 1
    low, high = limits(values, ends, least=LEAST)
    return 1 + low, 1 + high


def _labels(table: pd.DataFrame, _: Page) -> dict[Hashable, str]:
    services = table.loc[table["what"] == MEASURED, "service"]
    return {name: f"{name} (a copy)" if name[0] == "A" else f"{name} work" for name in services}


KNOWN_EFFECTS = View(
    "known_effects", EFFECT_TITLE, lambda run: known_effects(run)[EFFECT_COLUMNS],
    draw_known_effects,
    suits=lambda run: run.record.experiment == EXPERIMENT and FACTOR in run.record.factors,
)  # fmt: skip

VIEWS = (*OF_REQUESTS, CLIENT_COST, KNOWN_EFFECTS)
