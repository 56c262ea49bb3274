"""The entries of two sides' accounts, per request: each with its difference over blocks.

Blocks pair the sides. An interval is Student's t, which takes noise to be normal, and the p-values
of the entries that are tested together are one family (Holm).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pandas as pd

from perflab.statistics.comparison import USUAL_P
from perflab.statistics.families import holm
from perflab.statistics.mean_intervals import NO_DISTANCE
from perflab.statistics.quantiles import t_interval

METRIC = "metric"
# A metric of at least this share of the response time, on both sides, is the response time.
THE_REQUEST = 0.8
RESPONSE, REST, CPU = ("response", ""), ("not explained", ""), ("cpu", "")
# Entries of waits for a core begin so; those of stores have their names behind it.
CORE = "a core"
Key = tuple[str, str]
Name = TypeVar("Name")


@dataclass(frozen=True)
class Entry:
    """An entry of an account, per request: both sides, the difference and its 95% interval.

    Times are in ms. ``adjusted`` is the p-value, adjusted over all entries of the pair (NaN: not
    tested).
    """

    old: float
    new: float
    change: float
    low: float
    high: float
    p_value: float
    adjusted: float = math.nan

    @property
    def differs(self) -> bool:
        """Whether the sides differ for certain."""
        return self.adjusted <= USUAL_P


def by_block(
    table: pd.DataFrame, new: str, old: str
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return times, those of metrics, and counts by treatment and block.

    There is a column for each kind and entry; none of metrics where one of the two sides tells
    none. Waits for a core are summed over threads, of which others than the request's wait as well.
    So of a block all treatments have the same share of them, at which they are nowhere longer than
    what no other time explains.
    """
    is_metric = table["kind"] == METRIC
    if not {new, old} <= {*table.loc[is_metric, "treatment"]}:
        table, is_metric = table[~is_metric], is_metric[~is_metric]
    times, metrics, counts = (
        rows.dropna(subset=[values]).pivot_table(
            index=["treatment", "block"], columns=["kind", "entry"], values=values,
            aggfunc="sum", fill_value=0.0,
        )
        for rows, values in (
            (table[~is_metric], "time_ms"), (table[is_metric], "time_ms"), (table, "count"),
        )
    )  # fmt: skip
    if len(times):
        kinds, entries = (times.columns.get_level_values(level) for level in ("kind", "entry"))
        is_core = np.array((kinds == "wait") & entries.str.startswith(CORE))
        left = times[RESPONSE] - times.loc[:, ~is_core].drop(columns=[RESPONSE]).sum(axis=1)
        waited = times.loc[:, is_core].sum(axis=1)
        share = (left.clip(lower=0) / waited.where(waited > 0)).clip(upper=1)
        share = share.groupby(level="block").transform("min").fillna(0.0)
        times.loc[:, is_core] = times.loc[:, is_core].mul(share, axis=0)
        times[REST] = left - waited * share
    return times, metrics, counts


def has_both(table: pd.DataFrame, new: str, old: str) -> bool:
    """Tell whether a table by treatment and block has rows of both sides."""
    return len(table) > 0 and {new, old} <= {*table.index.get_level_values("treatment")}


def is_response(metric: Entry, response: Entry) -> bool:
    """Tell whether a time that a service counts itself is the response time."""
    sides = (metric.old, response.old), (metric.new, response.new)
    return all(of_metric >= THE_REQUEST * whole for of_metric, whole in sides)


def entries_of(table: pd.DataFrame, new: str, old: str) -> dict[Key, Entry]:
    """Return the difference of each column, by kind and entry."""
    return {(str(key[0]), str(key[1])): entry_of(table[key], new, old) for key in table.columns}


def entry_of(values: pd.Series[float], new: str, old: str) -> Entry:
    """Return the difference of an entry, paired within blocks."""
    sides = values.unstack("treatment")[[new, old]].dropna()
    changes = (sides[new] - sides[old]).to_numpy(dtype=float)
    low, high = t_interval(changes)
    return Entry(
        float(sides[old].mean()), float(sides[new].mean()), float(changes.mean()), low, high,
        _p_value(changes),
    )  # fmt: skip


def _p_value(changes: np.ndarray) -> float:
    """Return the p-value of Student's test that the mean change is 0."""
    from scipy import special

    mean, n = float(changes.mean()), len(changes)
    if n < 2:
        return math.nan
    error = float(changes.std(ddof=1)) / math.sqrt(n)
    if error <= NO_DISTANCE * abs(mean):  # counts are often the same in all blocks
        return 0.0 if mean else 1.0
    return float(2 * special.stdtr(n - 1, -abs(mean) / error))


def tested_together(family: Mapping[Name, Entry]) -> dict[Name, Entry]:
    """Return the entries with their p-values adjusted over all of them."""
    adjusted = holm([one.p_value for one in family.values()])
    return {
        key: replace(one, adjusted=p)
        for (key, one), p in zip(family.items(), adjusted, strict=True)
    }
