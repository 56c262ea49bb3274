"""The ladder: percentiles of every rung beside the study's targets, of deliveries and of pings.

Published percentiles are of pings: they stand beside pings alone.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from perflab.figures.charts import Axis, Points, Published, RowChart, Rules, Typical
from perflab.figures.evidence import trials_shown, typical_rows
from perflab.figures.looks import PALETTE, Look
from perflab.figures.plots.published_marks import (
    OTHER_LOAD,
    SAME_LOAD,
)
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.systems.chat.analysis.held import targets_ms
from perflab.systems.chat.rungs import published_of

DELIVERIES, PINGS = "delivery", "all_ping"
TITLES = {
    DELIVERIES: "delivery latency, rung by rung",
    PINGS: "pings, rung by rung, measured and published",
}
OF = {
    DELIVERIES: "All deliveries of a trial; no size was published of them.",
    PINGS: "All pings of a trial, one a second, silent times included. Published are pings of one"
    " run each, from another machine.",
}
BEYOND = 3.0
SHARES = ("p90", "p95", "p99")
TRIAL, TARGET, PUBLISHED = "trial", "target", "published"
COLUMNS = ["percentile", "what", "treatment", "state", "ms", "low", "high"]
LOOKS = {TRIAL: Look(PALETTE[0], "o", TRIAL)}


def ladder_table(run: Run, kind: str = DELIVERIES) -> pd.DataFrame:
    """Return three percentiles of the deliveries (or pings) of each rung, and the study's targets.

    ``what`` is a trial that did not fail (with its state), the typical value over valid trials
    (which statistic; with its 95% interval), what was published of pings (``state``: whether the
    rung has the published load), or the target.
    """
    trials = trials_shown(run)
    columns = [f"{kind}_{share}_ms" for share in SHARES]
    if not np.isfinite(trials.reindex(columns=columns).astype(float)).any(axis=None):
        return pd.DataFrame(columns=COLUMNS)
    parts = [part for share in SHARES for part in _of_share(run, trials, kind, share)]
    return pd.concat(parts, ignore_index=True)[COLUMNS]


def pings_table(run: Run) -> pd.DataFrame:
    """Return :func:`ladder_table` of pings."""
    return ladder_table(run, PINGS)


def _of_share(run: Run, trials: pd.DataFrame, kind: str, share: str) -> list[pd.DataFrame]:
    column = f"{kind}_{share}_ms"
    typical = typical_rows(run, column).rename(columns={"value": "ms"})
    limit_ms = targets_ms()[f"{DELIVERIES}_{share}_ms"]
    found = [
        trials.assign(what=TRIAL, ms=trials[column].astype(float)),
        typical[typical["n"] > 1],
        _published(run, share) if kind == PINGS else pd.DataFrame(),
        pd.DataFrame([{"what": TARGET, "ms": limit_ms}]),
    ]
    return [part.assign(percentile=share).reindex(columns=COLUMNS) for part in found if len(part)]


def _published(run: Run, share: str) -> pd.DataFrame:
    """Return the published percentile of the rungs that stand for a row of the study's table."""
    rows = []
    for item in run.record.treatments:
        known = published_of(item.levels)
        if share in known.ms:
            state = SAME_LOAD if known.same_load else OTHER_LOAD
            rows.append((PUBLISHED, item.name, state, known.ms[share]))
    return pd.DataFrame(rows, columns=["what", "treatment", "state", "ms"])


def has_rungs(run: Run) -> bool:
    """Return whether a run is of a ladder."""
    return "rung" in run.record.factors


def has_pings(run: Run) -> bool:
    """Return whether a run of a ladder has trials with enough pings for a p90."""
    column = f"{PINGS}_p90_ms"
    return has_rungs(run) and bool(run.trials().reindex(columns=[column])[column].notna().any())


def _chart(kind: str) -> RowChart:
    return RowChart(
        TITLES[kind],
        "Points: trials (hollow: refused). Bar: typical value over valid trials, with its 95%"
        " interval where n allows one (an arrow: it goes on); none of a single trial. Dashed: the"
        f" study's targets. {OF[kind]}",
        layers=(
            Points(looks=LOOKS, at=0.14, how={"s": 13}),
            Typical(among=(TRIAL,), at=-0.15, beyond=BEYOND, size=9),
            Rules((TARGET,), "target"),
            Published(at=-0.15),
        ),
        panels={share: Axis(f"{share}, ms (log)", log=True, sparse=True) for share in SHARES},
        panel="percentile",
        value="ms",
    )


LADDER = View("ladder", TITLES[DELIVERIES], ladder_table, _chart(DELIVERIES).draw, suits=has_rungs)
PINGED = View("pings", TITLES[PINGS], pings_table, _chart(PINGS).draw, suits=has_pings)
