"""The published rows of the chat study, beside what a run measured of the same pings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from perflab.analysis.methods.quantiles import across_trials
from perflab.recordings import Run
from perflab.systems.chat.rungs import PERCENTILES, SCENARIOS, published_ms

ROWS = ["row", "rung", "percentile", "published ms", "measured ms", "low", "high", "n", "load"]
SAME, OTHER, NOT_RUN = "as published", "another one", "not in this run"


@dataclass(frozen=True)
class PublishedRow:
    """What was published of a treatment: percentiles of pings in ms by name (``p90``).

    ``same_load``: the treatment has that row's load; only then may a size be compared.
    """

    ms: Mapping[str, float]
    same_load: bool


def published_of(levels: Mapping[str, str]) -> PublishedRow:
    """Return what was published of a treatment with these levels; nothing of most."""
    names = {scenario: name for name, scenario in SCENARIOS.items()}
    stated = levels.get("scenario", "")
    rung = names.get(stated) or levels.get("rung", "")
    values = {f"p{share}": value for share, value in published_ms(rung).items()}
    return PublishedRow(values, bool(stated))


def published_rows(run: Run) -> pd.DataFrame:
    """Return the 19 published rows, a line for each percentile, with what the run has of them.

    Columns: row (of the study's table), rung, percentile, ``published ms``; ``measured ms``: the
    typical value over valid trials of that percentile of all pings of a trial, with its 95%
    interval ``low`` to ``high`` (NaN where n is too small) and n; load: whether the rung had the
    row's load. Absolutes of two machines: only their ratios, rung against rung, are judged.
    """
    trials = run.valid_trials()
    treatments = {item.levels.get("rung", ""): item for item in run.record.treatments}
    rows = []
    for name, scenario in SCENARIOS.items():
        item = treatments.get(name)
        load = NOT_RUN
        own = trials.iloc[:0]
        if item is not None:
            load = SAME if item.levels.get("scenario") else OTHER
            own = trials[trials["treatment"] == item.name]
        for share in PERCENTILES:
            values = own.reindex(columns=[f"all_ping_p{share}_ms"]).iloc[:, 0].dropna()
            found = across_trials(values.to_numpy(float)) if len(values) else None
            measured = (found.value, found.low, found.high, found.n) if found else NOTHING
            published = published_ms(name)[share]
            rows.append((scenario, name, f"p{share}", published, *measured, load))
    return pd.DataFrame(rows, columns=ROWS)


NOTHING = (math.nan, math.nan, math.nan, 0)
