"""Throughput over users, and what the published limit would need."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd

from perflab.figures.charts import Axis, Plane, Planes, Points
from perflab.figures.origin import Page, trials_shown
from perflab.figures.view import View
from perflab.recordings import Run, published_value
from perflab.systems.metricstream.rungs import OTHERS, STUDY
from perflab.systems.metricstream.success_by_phase import STYLES, TRIAL

THROUGHPUT_TITLE = "throughput over users, and what the published limit would need"
NEEDED, LIMITED = "needed", "limited"
PREFIX = "users_"
THROUGHPUT_COLUMNS = ["what", "users", "state", "value", "words"]


def clients_table(run: Run) -> pd.DataFrame:
    """Return throughput by users of every trial, and sentences on the published limit.

    ``needed``: how many cores the published 374,600/s would take at the server's own CPU time for
    a request (the median over valid trials). ``limited``: how many CPUs the server could use.
    """
    trials = trials_shown(run)
    rows = trials[trials.get("factor_rung", pd.Series(dtype=str)).str.startswith(PREFIX)]
    if rows.empty or "throughput_rps" not in rows:
        return pd.DataFrame(columns=THROUGHPUT_COLUMNS)
    users = rows["factor_rung"].str.removeprefix(PREFIX).astype(float)
    points = pd.DataFrame(
        {"what": TRIAL, "users": users, "state": rows["state"], "value": rows["throughput_rps"]}
    )
    valid = rows[rows["state"] == "valid"]
    parts = [points, pd.DataFrame(_of_limits(run, valid))]
    table = pd.concat([part for part in parts if len(part)], ignore_index=True)
    return table.reindex(columns=THROUGHPUT_COLUMNS)


def _of_limits(run: Run, valid: pd.DataFrame) -> Iterator[dict[str, Any]]:
    request_us = float(valid["server_cpu_us_per_request"].median()) if len(valid) else math.nan
    limit_rps = published_value(STUDY, OTHERS, "theoretical limit", "throughput")
    if math.isfinite(request_us):
        words = (
            f"the published limit of {limit_rps:,.0f}/s would take"
            f" {limit_rps * request_us / 1e6:,.3g} cores of this server alone ({request_us:.3g} us"
            f" of CPU for a request, median of n = {len(valid)} trials)"
        )
        yield {"what": NEEDED, "words": words}
    if cpus := run.record.parameters.get("server_cpus"):
        words = f"the server could use {cpus:g} CPUs, so this is not the throughput of a whole core"
        yield {"what": LIMITED, "words": words}


def _throughput_words(table: pd.DataFrame, _: Page) -> str:
    sentences = table.loc[table["what"].isin([NEEDED, LIMITED]), "words"].astype(str)
    text = "".join(f" {sentence[:1].upper()}{sentence[1:]}." for sentence in sentences)
    return (
        "Every point is a trial (hollow: refused; where the client was the limit, it is not the"
        f" server's throughput).{text}"
    )


THROUGHPUT_CHART = Planes(
    THROUGHPUT_TITLE,
    _throughput_words,
    layers=(Points(styles=STYLES, how={"s": 22}),),
    planes=Plane(
        Axis("users of the closed loop, no think time (log)", log=True),
        Axis("throughput, successful responses per second", below=0.0),
    ),
    x="users",
)
THROUGHPUT_OVER_CLIENTS = View(
    "throughput_over_clients", THROUGHPUT_TITLE, clients_table, THROUGHPUT_CHART.draw,
    suits=lambda run: any(name.startswith(PREFIX) for name in run.record.factors.get("rung", ())),
)  # fmt: skip
