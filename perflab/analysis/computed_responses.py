"""Responses of a trial that are computed from its tables when a claim is about them.

``busy_share_of_cores``: the time in which the cores that services may use were busy, with any
process. What others used may have been in the way of the services or not, so its lower end is what
the services used by themselves, where the scheduler's accounts tell that.

``flush_share_of_waiting``: flush / (flush + core), where backends of the database wait for the
flush of a commit (``pg_stat_activity``) and threads of services for a core
(:mod:`perflab.analysis.accounts.core_accounts`), in seconds a second. Where others filled the
cores, nobody knows which waits for a core they caused, so its upper end is 1.

``ms_per_answer``: the inverse of the throughput.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from perflab.analysis.accounts.commit_waits import OF_FLUSH, active_counts
from perflab.analysis.accounts.core_accounts import service_cores, waiting_services
from perflab.recordings import Run
from perflab.recordings.responses import at_most_column, lower_end_column
from perflab.statistics.cumulative import used_ns

BUSY, FLUSH, PER_ANSWER = "busy_share_of_cores", "flush_share_of_waiting", "ms_per_answer"
# If others used more of the cores, services may have waited for them.
MOST_OF_OTHERS = 0.1
Columns = dict[str, Any]


def trials_with(run: Run, response: str) -> pd.DataFrame:
    """Return the trials whose value of a response may enter a comparison, with this response."""
    trials = run.trials_of(response)
    columns_of = COMPUTED.get(response)
    if columns_of is None or response in trials:
        return trials
    return trials.assign(**columns_of(run, trials))


def _busy_share(run: Run, trials: pd.DataFrame) -> Columns:
    cores = [f"core {core}" for core in service_cores(run.record)]
    samples = run.table("samples", list(trials["trial_id"]))
    of_core = samples[samples["service"].isin(cores)].groupby(["trial_id", "service"])
    used: dict[str, list[float]] = {}
    spans = trials.set_index("trial_id")[["begin_ns", "end_ns"]].to_dict("index")
    for (trial, _), rows in of_core:
        begin_ns, end_ns = spans[trial].values()
        share = used_ns(rows, "cpu_ns", begin_ns, end_ns) / max(1, end_ns - begin_ns)
        used.setdefault(str(trial), []).append(share)
    busy = [float(np.mean(used[name])) if name in used else math.nan for name in trials["trial_id"]]
    # NaN without the scheduler's accounts.
    by_services = _sum_over_services(trials, "cpu_share_") / (len(cores) or math.nan)
    return {BUSY: busy, lower_end_column(BUSY): by_services}


def _sum_over_services(trials: pd.DataFrame, prefix: str) -> pd.Series[float]:
    names = [f"{prefix}{name}" for name in waiting_services(trials)]
    return trials[names].astype(float).sum(axis=1, skipna=False, min_count=1)


def _flush_share(run: Run, trials: pd.DataFrame) -> Columns:
    counts = active_counts(run)
    flush = counts[counts["event"].isin(OF_FLUSH)]
    flush_waits = flush.groupby("trial_id")["count"].sum()
    looks = counts.groupby("trial_id")["looks"].first()
    # A trial that was looked at, and in which nobody waited for the flush, has none of it.
    by_trial = flush_waits.reindex(looks.index, fill_value=0) / looks
    flush_s = trials["trial_id"].map(by_trial).astype(float)
    waiting_s = flush_s + _sum_over_services(trials, "core_wait_share_")
    share = (flush_s / waiting_s).where(waiting_s > 0)
    of_cores = _busy_share(run, trials)
    of_others = of_cores[BUSY] - of_cores[lower_end_column(BUSY)]
    return {FLUSH: share, at_most_column(FLUSH): share.mask(of_others > MOST_OF_OTHERS, 1.0)}


def _ms_per_answer(_run: Run, trials: pd.DataFrame) -> Columns:
    rate = trials["throughput_rps"].astype(float)
    return {PER_ANSWER: (1e3 / rate).where(rate > 0)}


COMPUTED: Mapping[str, Callable[[Run, pd.DataFrame], Columns]] = {
    BUSY: _busy_share,
    FLUSH: _flush_share,
    PER_ANSWER: _ms_per_answer,
}
