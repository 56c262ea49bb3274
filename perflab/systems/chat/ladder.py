"""The ladder: percentiles of every rung, of deliveries and of pings, beside the targets.

Published percentiles are of pings: they stand beside pings alone.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from perflab.figures.charts import TRIAL, Axis, Points, Published, RowChart, Rules, Typical
from perflab.figures.origin import trials_and_typical, trials_shown
from perflab.figures.theme import PALETTE, Style
from perflab.figures.view import OTHER_LOAD, PUBLISHED, SAME_LOAD, View, varies
from perflab.recordings import Run, targets
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
TARGET = "target"
LADDER_COLUMNS = ["percentile", "what", "treatment", "state", "ms", "low", "high"]
STYLES = {TRIAL: Style(PALETTE[0], "o", TRIAL)}


def targets_ms() -> dict[str, float]:
    """Return the chat study's targets by response, in ms: p90, p95 and p99 of deliveries."""
    return {
        f"delivery_{measure.removesuffix('_latency')}_ms": value
        for measure, value in targets("chat").items()
    }


def ladder_table(run: Run, kind: str = DELIVERIES) -> pd.DataFrame:
    """Return three percentiles of the deliveries (or pings) of each rung, and the study's targets.

    ``what`` is a trial that did not fail (with its state), the statistic of a typical value over
    valid trials (with its 95% interval), a published percentile of pings (``state``: whether the
    rung has the published load), or the target.
    """
    trials = trials_shown(run)
    columns = [f"{kind}_{share}_ms" for share in SHARES]
    if not np.isfinite(trials.reindex(columns=columns).astype(float)).any(axis=None):
        return pd.DataFrame(columns=LADDER_COLUMNS)
    parts = [part for share in SHARES for part in _of_share(run, kind, share)]
    return pd.concat(parts, ignore_index=True)[LADDER_COLUMNS]


def _of_share(run: Run, kind: str, share: str) -> list[pd.DataFrame]:
    measured = trials_and_typical(run, {f"{kind}_{share}_ms": (share, 1.0)})
    limit_ms = targets_ms()[f"{DELIVERIES}_{share}_ms"]
    parts = [
        # The value of a single trial is no typical value.
        measured[measured["n"] != 1].rename(columns={"value": "ms"}),
        _published(run, share) if kind == PINGS else pd.DataFrame(),
        pd.DataFrame([{"what": TARGET, "ms": limit_ms}]),
    ]
    return [
        part.assign(percentile=share).reindex(columns=LADDER_COLUMNS) for part in parts if len(part)
    ]


def _published(run: Run, share: str) -> pd.DataFrame:
    """Return the published percentile of each rung that repeats a row of the study's table."""
    rows = []
    for treatment in run.record.treatments:
        published_ms, same_load = published_of(treatment.levels)
        if share in published_ms:
            state = SAME_LOAD if same_load else OTHER_LOAD
            rows.append((PUBLISHED, treatment.name, state, published_ms[share]))
    return pd.DataFrame(rows, columns=["what", "treatment", "state", "ms"])


def has_pings(run: Run) -> bool:
    """Return whether a run compares rungs, in trials with enough pings for a p90."""
    column = f"{PINGS}_p90_ms"
    p90_ms = run.trials().reindex(columns=[column])[column]
    return "rung" in run.record.factors and bool(p90_ms.notna().any())


def _chart(kind: str) -> RowChart:
    return RowChart(
        TITLES[kind],
        "Points: trials (hollow: refused). Bar: typical value over valid trials, with its 95%"
        " interval where n allows one (an arrow: it goes on); none of a single trial. Dashed: the"
        f" study's targets. {OF[kind]}",
        layers=(
            Points(styles=STYLES, at=0.14, how={"s": 13}),
            Typical(among=(TRIAL,), at=-0.15, beyond=BEYOND, size=9),
            Rules((TARGET,), "target"),
            Published(at=-0.15),
        ),
        panels={share: Axis(f"{share}, ms (log)", log=True, sparse=True) for share in SHARES},
        panel="percentile",
        value="ms",
    )


LADDER = View("ladder", TITLES[DELIVERIES], ladder_table, _chart(DELIVERIES).draw, varies("rung"))
PINGED = View(
    "pings", TITLES[PINGS], partial(ladder_table, kind=PINGS), _chart(PINGS).draw, suits=has_pings
)
