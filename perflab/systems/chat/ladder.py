"""The ladder: percentiles of every rung, of deliveries and of pings, and the targets it met.

Published percentiles are of pings: they stand beside pings alone.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import (
    Axis,
    Intervals,
    Points,
    Published,
    RowChart,
    Rules,
    Texts,
    Typical,
)
from perflab.figures.origin import Page, trials_shown, typical_rows
from perflab.figures.theme import PALETTE, Look
from perflab.figures.view import OTHER_LOAD, PUBLISHED, SAME_LOAD, View, varies
from perflab.recordings import Run, TreatmentRecord, targets
from perflab.statistics.two_samples import Rate
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
TRIAL, TARGET = "trial", "target"
COLUMNS = ["percentile", "what", "treatment", "state", "ms", "low", "high"]
LOOKS = {TRIAL: Look(PALETTE[0], "o", TRIAL)}


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
        return pd.DataFrame(columns=COLUMNS)
    parts = [part for share in SHARES for part in _of_share(run, trials, kind, share)]
    return pd.concat(parts, ignore_index=True)[COLUMNS]


def _of_share(run: Run, trials: pd.DataFrame, kind: str, share: str) -> list[pd.DataFrame]:
    column = f"{kind}_{share}_ms"
    typical = typical_rows(run, column).rename(columns={"value": "ms"})
    limit_ms = targets_ms()[f"{DELIVERIES}_{share}_ms"]
    parts = [
        trials.assign(what=TRIAL, ms=trials[column].astype(float)),
        typical[typical["n"] > 1],
        _published(run, share) if kind == PINGS else pd.DataFrame(),
        pd.DataFrame([{"what": TARGET, "ms": limit_ms}]),
    ]
    return [part.assign(percentile=share).reindex(columns=COLUMNS) for part in parts if len(part)]


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
            Points(looks=LOOKS, at=0.14, how={"s": 13}),
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


TARGET_TITLE = "the three targets, met in k of n trials"
TARGET_COLUMNS = [
    "treatment", "percentile", "of", "target_ms", "met", "unknown", "trials", "low", "high",
    "published_ms", "load",
]  # fmt: skip
SAME, OTHER = "as published", "another one"
MEASURED = "measured"
MEASURED_LOOKS = {MEASURED: Look(PALETTE[0], "o", MEASURED)}


def targets_met(run: Run) -> pd.DataFrame:
    """Return one row per treatment that has trials, and target.

    Columns: treatment (its name), percentile (``p90``), ``of`` (pings if the treatment has a
    published row's load, because the study judged pings; else deliveries), target_ms;
    met (trials), unknown (valid trials whose sample is too small for the percentile), trials (all
    that are not superseded), low and high (exact 95% interval of met / trials); published_ms (of
    pings, or NaN) and load (``as published``, ``another one``, or empty without published_ms).

    A trial that failed, was refused or is unknown counts as not met, because a number of users is
    held only if all its trials held.
    """
    trials = run.current_trials()
    rows = []
    for treatment in run.record.treatments:
        of_treatment = trials[trials["treatment"] == treatment.name]
        if len(of_treatment):
            rows += [_of_target(treatment, of_treatment, share) for share in SHARES]
    return pd.DataFrame(rows, columns=TARGET_COLUMNS)


def _of_target(treatment: TreatmentRecord, trials: pd.DataFrame, share: str) -> dict[str, Any]:
    published_ms, same_load = published_of(treatment.levels)
    column = f"{PINGS if same_load else DELIVERIES}_{share}_ms"
    limit_ms = targets_ms()[f"{DELIVERIES}_{share}_ms"]
    valid = trials[trials["state"] == "valid"]
    values = valid.reindex(columns=[column])[column].astype(float)
    rate = Rate(int((values <= limit_ms).sum()), len(trials))
    low, high = rate.interval
    load = (SAME if same_load else OTHER) if published_ms else ""
    return {
        "treatment": treatment.name, "percentile": share,
        "of": "pings" if same_load else "deliveries", "target_ms": limit_ms,
        "met": rate.hits, "unknown": int(values.isna().sum()), "trials": rate.n,
        "low": low, "high": high,
        "published_ms": published_ms.get(share, math.nan), "load": load,
    }  # fmt: skip


def draw_targets(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a panel for each target and a row for each treatment."""
    kinds = " and ".join(sorted(set(table["of"])))
    limits = table.groupby("percentile")["target_ms"].first().to_dict()
    ticks = {0.0: "0", 0.5: "50%", 1.0: "100%"}
    chart = RowChart(
        TARGET_TITLE,
        f"Share of all trials of a rung whose percentile of {kinds} is within the target, with its"
        " exact 95% interval; a trial that was refused or has too few of them is not within it."
        " Pings stand for a rung at the published load, deliveries for any other. Published: 100%"
        " (met) or 0.",
        layers=(
            Intervals(
                (MEASURED,), at=0.22, by="what", looks=MEASURED_LOOKS, within=(0.0, 1.0), size=5
            ),
            Published(at=-0.24),
            Texts((MEASURED,), at=-0.02, muted=False),
        ),
        panels={
            str(share): Axis(f"{share} within {limit:,.0f} ms", ends=(-0.06, 1.06), ticks=ticks)
            for share, limit in limits.items()
        },
        panel="percentile",
    )
    return chart.draw(_as_drawn(table), page)


def _as_drawn(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for the measured share of each target, and one for the published value."""
    counts = zip(table["met"], table["trials"], strict=True)
    measured = table.assign(what=MEASURED, state="", value=table["met"] / table["trials"])
    measured["words"] = [f"{met:g} of {trials:g}" for met, trials in counts]
    too_few = table["unknown"] == table["trials"]
    measured.loc[too_few, ["value", "low", "high"]] = np.nan
    measured.loc[too_few, "words"] = "n too small"
    with_published = table[table["published_ms"].notna()]
    published = with_published.assign(
        what=PUBLISHED,
        state=np.where(with_published["load"] == SAME, SAME_LOAD, OTHER_LOAD),
        value=(with_published["published_ms"] <= with_published["target_ms"]).astype(float),
        low=math.nan,
        high=math.nan,
    )
    return pd.concat([measured, published], ignore_index=True)


TARGETS_MET = View("targets_met", TARGET_TITLE, targets_met, draw_targets, varies("rung"))
