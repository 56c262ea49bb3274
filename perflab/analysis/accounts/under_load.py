"""What of a difference comes only under the load of a run, and what requests wait for there."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from perflab.analysis.accounts.entries import (
    CPU,
    RESPONSE,
    Entry,
    by_block,
    entries_of,
    entry_of,
    has_both,
    is_response,
)
from perflab.statistics.comparison import USUAL_P
from perflab.statistics.in_words import number

# From this share on a difference comes only under load; a core that is busier is full.
ONLY_LOADED, FULL = 0.5, 0.85
ONE_AT_A_TIME = "something in the service that one request uses at a time: a lock, a pool, a thread"


def only_under_load(
    accounts: pd.DataFrame,
    function_times: pd.DataFrame,
    throughputs_rps: Mapping[str, float],
    new: str,
    old: str,
    alone: Entry,
) -> str:
    """Return a sentence where most of a difference comes only under the load of the run.

    ``accounts`` and ``function_times`` are of that load, with treatment and block; the throughputs
    are by treatment. ``alone`` is the response time of requests that come one at a time. What waits
    for no part that the kernel or the service counts waits for the slower side's core if that is
    full, and else in a function, if one is known.
    """
    if accounts.empty:
        return ""
    times, metrics, _ = by_block(accounts, new, old)
    if not has_both(times, new, old):
        return ""
    response = entry_of(times[RESPONSE], new, old)
    only_ms = response.change - alone.change
    if not response.p_value <= USUAL_P or only_ms / response.change < ONLY_LOADED:
        return ""
    waits = times.loc[:, times.columns.get_level_values("kind") == "wait"]
    of_metrics = entries_of(metrics, new, old)
    counted = metrics[[key for key, one in of_metrics.items() if not is_response(one, response)]]
    cpu = entry_of(times[CPU], new, old)
    slower, cpu_ms = (new, cpu.new) if response.change > 0 else (old, cpu.old)
    share = throughputs_rps[slower] * cpu_ms / 1e3
    if name := _most_of(waits, new, old, only_ms):
        what = f"for {name}"
    elif name := _most_of(counted, new, old, only_ms):
        what = f"for {name}, as the service counts it"
    elif share >= FULL:
        what = f"for the service itself, which uses {share:.0%} of a core"
    elif name := _most_of(_by_function(function_times), new, old, only_ms):
        what = f"in {name}, for what one request uses at a time: a lock, a pool"
    else:
        what = f"for {ONE_AT_A_TIME}"
    whole_ms = abs(response.change)
    # It is more than the whole if requests that come one at a time have become faster.
    of_whole = f"{number(min(abs(only_ms), whole_ms))} of {number(whole_ms)} ms"
    return f"{of_whole} come only under the load: requests wait {what}"


def _most_of(table: pd.DataFrame, new: str, old: str, only_ms: float) -> str:
    """Return the entry that changes most with a difference, if that is enough of it; or nothing."""
    if not has_both(table, new, old):
        return ""
    up = math.copysign(1.0, only_ms)
    changes = {key[1]: up * one.change for key, one in entries_of(table, new, old).items()}
    most = max(changes, key=changes.__getitem__, default="")
    return most if most and changes[most] >= ONLY_LOADED * abs(only_ms) else ""


def _by_function(table: pd.DataFrame) -> pd.DataFrame:
    """Return the times of functions by treatment and block."""
    if table.empty:
        return table
    return table.assign(kind="function").pivot_table(
        index=["treatment", "block"], columns=["kind", "function"], values="time_ms",
        aggfunc="sum", fill_value=0.0,
    )  # fmt: skip
