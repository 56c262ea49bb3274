"""Throughput over the users of a closed loop, and what the published limit would need."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from perflab.figures.charts import Axis, Plane, Planes, Points
from perflab.figures.evidence import trials_shown
from perflab.figures.looks import PALETTE, Look
from perflab.figures.page import Page
from perflab.figures.view import View
from perflab.recordings import Run, published_value
from perflab.systems.metricstream.preset import OTHERS, STUDY

TITLE = "throughput over users, and what the published limit would need"
TRIAL, NEEDED, LIMITED = "trial", "needed", "limited"
LOOKS = {TRIAL: Look(PALETTE[0], "o", "trial")}
PREFIX = "users_"
COLUMNS = ["what", "users", "state", "value", "words"]


def clients_table(run: Run) -> pd.DataFrame:
    """Return throughput by users of every trial, and in words what the published limit would take.

    ``needed`` is how many cores the published 374,600/s would take at the server's own CPU time
    for a request: the median over the valid trials. ``limited`` says what the server could use.
    """
    trials = trials_shown(run)
    own = trials[trials.get("factor_rung", pd.Series(dtype=str)).str.startswith(PREFIX)]
    if own.empty or "throughput_rps" not in own:
        return pd.DataFrame(columns=COLUMNS)
    users = own["factor_rung"].str.removeprefix(PREFIX).astype(float)
    points = pd.DataFrame(
        {"what": TRIAL, "users": users, "state": own["state"], "value": own["throughput_rps"]}
    )
    valid = own[own["state"] == "valid"]
    parts = [points, pd.DataFrame([*_needed(valid), *_limited(run)])]
    return pd.concat([each for each in parts if len(each)], ignore_index=True).reindex(
        columns=COLUMNS
    )


def _needed(valid: pd.DataFrame) -> list[dict[str, Any]]:
    each_us = float(valid["server_cpu_us_per_request"].median()) if len(valid) else math.nan
    limit = published_value(STUDY, OTHERS, "theoretical limit", "throughput")
    if not math.isfinite(each_us):
        return []
    words = (
        f"the published limit of {limit:,.0f}/s would take {limit * each_us / 1e6:,.3g} cores of"
        f" this server alone ({each_us:.3g} us of CPU for a request, median of n = {len(valid)}"
        " trials)"
    )
    return [{"what": NEEDED, "words": words}]


def _limited(run: Run) -> list[dict[str, Any]]:
    cpus = run.record.parameters.get("server_cpus")
    if cpus is None:
        return []
    words = f"the server could use {cpus:g} CPUs, so this is not the throughput of a whole core"
    return [{"what": LIMITED, "words": words}]


def _words(table: pd.DataFrame, _: Page) -> str:
    said = table.loc[table["what"].isin([NEEDED, LIMITED]), "words"].astype(str)
    told = "".join(f" {each[:1].upper()}{each[1:]}." for each in said)
    return (
        "Every point is a trial (hollow: refused; where the client was the limit, it is not the"
        f" server's throughput).{told}"
    )


CHART = Planes(
    TITLE,
    _words,
    layers=(Points(looks=LOOKS, how={"s": 22}),),
    planes=Plane(
        Axis("users of the closed loop, no think time (log)", log=True),
        Axis("throughput, successful responses per second", below=0.0),
    ),
    x="users",
)


def has_users(run: Run) -> bool:
    """Return whether a run varies the users of a closed loop."""
    rungs = [item.levels.get("rung", "") for item in run.record.treatments]
    return any(name.startswith(PREFIX) for name in rungs)


THROUGHPUT_OVER_CLIENTS = View(
    "throughput_over_clients", TITLE, clients_table, CHART.draw, suits=has_users
)
