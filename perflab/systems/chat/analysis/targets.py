"""In how many trials of each configuration the study's three targets were met, each by itself."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from perflab.analysis.methods.rates import Rate
from perflab.recordings import Run, TreatmentRecord
from perflab.systems.chat.analysis.held import targets_ms
from perflab.systems.chat.rungs import published_of

COLUMNS = [
    "treatment", "percentile", "of", "target_ms", "met", "unknown", "trials", "low", "high",
    "published_ms", "load",
]  # fmt: skip
DELIVERIES, PINGS = "deliveries", "pings"
SAME, OTHER = "as published", "another one"


def targets_met(run: Run) -> pd.DataFrame:
    """Return one row per treatment and target.

    Columns: treatment (its name), percentile (``p90``), ``of`` (what it is of: pings where the
    treatment has a published row's load, for the study judged pings; else deliveries), target_ms;
    met (trials), unknown (valid trials whose sample is too small for the percentile), trials (all
    that are not superseded), low and high (exact 95% interval of met / trials); published_ms (of
    pings, NaN without) and load (``as published`` or ``another one``; empty without).

    A trial that failed, was refused or cannot tell is among the trials and not met, as a number of
    users is held only where every trial of it held.
    """
    trials = run.trials()
    trials = trials[~trials["superseded"].astype(bool)]
    rows = [
        _of_target(item, trials[trials["treatment"] == item.name], response, limit_ms)
        for item in run.record.treatments
        for response, limit_ms in targets_ms().items()
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def _of_target(
    item: TreatmentRecord, own: pd.DataFrame, response: str, limit_ms: float
) -> dict[str, Any]:
    percentile = response.removeprefix("delivery_").removesuffix("_ms")
    known = published_of(item.levels)
    column = f"all_ping_{percentile}_ms" if known.same_load else response
    valid = own[own["state"] == "valid"]
    values = valid.reindex(columns=[column]).iloc[:, 0].astype(float)
    rate = Rate(int((values <= limit_ms).sum()), len(own))
    low, high = rate.interval
    load = (SAME if known.same_load else OTHER) if known.ms else ""
    return {
        "treatment": item.name, "percentile": percentile,
        "of": PINGS if known.same_load else DELIVERIES, "target_ms": limit_ms,
        "met": rate.hits, "unknown": int(values.isna().sum()), "trials": rate.n,
        "low": low, "high": high,
        "published_ms": known.ms.get(percentile, math.nan), "load": load,
    }  # fmt: skip
