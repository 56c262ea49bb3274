"""Responses against the rate at which requests are offered."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Intervals, Lines, Plane, Planes, Points
from perflab.figures.origin import TRIAL, TYPICAL, Page, trials_and_typical
from perflab.figures.theme import Style, appearance
from perflab.figures.view import View, varies
from perflab.recordings import Run

RATE = "rate"
# An interval may reach this many times beyond the trials.
BEYOND = 3.0
RATE_COLUMNS = ["response", "what", "series", "rate", "state", "value", "low", "high"]


def rate_table(run: Run, panels: Mapping[str, str]) -> pd.DataFrame:
    """Return the responses at each rate, of every trial that did not fail.

    Treatments of a series differ in their rate alone; their labels are "series, rate/s". ``what``
    is a trial (with its state), or the statistic of a typical value of several valid trials, with
    its 95% interval.
    """
    treatments = run.record.treatments
    rates = {item.name: float(item.levels[RATE]) for item in treatments}
    words = {item.name: item.label.removesuffix(f", {item.levels[RATE]}/s") for item in treatments}
    rows = trials_and_typical(run, {response: (response, 1.0) for response in panels})
    rows = rows[(rows["what"] == TRIAL) | (rows["n"] > 1)].rename(columns={"panel": "response"})
    rows["series"], rows["rate"] = rows["treatment"].map(words), rows["treatment"].map(rates)
    order = [
        rows["response"].map([*panels].index),
        rows["what"] != TRIAL,
        rows["series"].map([*dict.fromkeys(words.values())].index),
        rows["rate"],
    ]
    # Trials of a treatment stay in the order of their blocks.
    return rows.iloc[np.lexsort(order[::-1])].reset_index(drop=True)[RATE_COLUMNS]


def draw_rates(table: pd.DataFrame, page: Page, title: str, panels: Mapping[str, str]) -> LabFigure:
    """Draw every trial against the offered rate."""
    series = enumerate(table["series"].unique())
    styles = {name: Style(*appearance(place), name) for place, name in series}
    style: dict[str, Any] = {"by": "series", "styles": styles}
    rates = {float(rate): f"{rate:,.0f}" for rate in sorted(table["rate"].unique())}
    x = Axis("offered load, requests per second", log=True, ticks=rates)
    chart = Planes(
        title,
        "Every point is one trial; hollow: the generator's self-check refused it. A line joins the"
        " typical values over the valid trials, with their 95% intervals (median; below 6 trials:"
        " geometric mean; an arrow: it goes on), where there are several.",
        layers=(
            Lines(TYPICAL, keyed=False, **style),
            Intervals(TYPICAL, along="y", beyond=BEYOND, among=(TRIAL,), lw=1.1,
                      size=0, keyed=False, **style),
            Points((TRIAL,), how={"linewidth": 0.0}, **style),
        ),
        planes={name: Plane(x, Axis(label, log=True)) for name, label in panels.items()},
        panel="response",
        x="at",
        height_in=3.1,
        further_in=3.1,
    )  # fmt: skip
    # Series are shifted sideways, because their trials at one rate would hide each other.
    shifts = {name: 1.05 ** (place - (len(styles) - 1) / 2) for place, name in enumerate(styles)}
    return chart.draw(table.assign(at=table["rate"] * table["series"].map(shifts)), page)


def rate_view(name: str, title: str, panels: Mapping[str, str]) -> View:
    """Return a view of responses (with the words of their axes) for runs with a factor ``rate``."""
    return View(
        name,
        title,
        partial(rate_table, panels=panels),
        partial(draw_rates, title=title, panels=panels),
        varies(RATE),
    )
