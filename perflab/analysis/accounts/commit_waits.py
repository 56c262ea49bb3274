"""What a database's backends wait for while a statement is under way.

Ten times a second the lab asks ``pg_stat_activity`` what each client's backend does
(:mod:`perflab.instruments.kernel`). Of the backends with a statement under way (state "active") a
share is in each wait event. Backends without a wait event run, or are ready and wait for a core:
PostgreSQL does not distinguish these. The look itself is a backend. If it shares its core with the
others, none of them can run while it looks, and a backend that a request has just reached is still
called idle: then the shares are shares of waits. Samples of one trial depend on each other, so the
unit is the trial: its share is over all its samples, and the interval is over trials.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from perflab.recordings import Run
from perflab.statistics.quantiles import t_interval

ACTIVE = "active"
NO_WAIT = "no wait event"
WAIT_COLUMNS = ["treatment", "event", "share", "low", "high", "trials", "samples", "backends"]
# The waits of a commit: for the flush itself, and for the lock of the backend that flushes for all.
# PostgreSQL 15 writes WALSync, 17 and later WalSync.
OF_FLUSH = ("IO: WalSync", "LWLock: WALWrite")
ONE_NAME = {"WALSync": "WalSync", "WALWrite": "WalWrite"}


def wait_shares(run: Run) -> pd.DataFrame:
    """Return where active backends waited in the measured stage, by treatment, largest first.

    Columns: treatment, event ("type: name", or ``NO_WAIT``), share of the samples of active
    backends, mean over trials, with its 95% t interval low to high (NaN below 2 trials; 0 and 1
    are its bounds), trials, samples (active backends counted), backends (active at a time, mean).
    Treatments without an active backend have no row.
    """
    rows = []
    for treatment, of_treatment in active_counts(run).groupby("treatment", sort=False):
        wide = of_treatment.pivot_table(
            index="trial_id", columns="event", values="count", aggfunc="sum", fill_value=0
        )
        shares = wide.div(wide.sum(axis=1), axis=0)
        looks = of_treatment.groupby("trial_id")["looks"].first()
        samples, backends = int(wide.to_numpy().sum()), float((wide.sum(axis=1) / looks).mean())
        for event, share in shares.mean().sort_values(ascending=False).items():
            ends = np.clip(t_interval(shares[event].to_numpy(float)), 0.0, 1.0)
            evidence = (len(shares), samples, backends)
            rows.append((str(treatment), str(event), share, *ends, *evidence))
    return pd.DataFrame(rows, columns=WAIT_COLUMNS)


def active_counts(run: Run) -> pd.DataFrame:
    """Return active backends counted per valid trial and wait event, in the measured stage.

    Columns: treatment, block, trial_id, event, count, looks (samples taken of the trial).
    """
    columns = ["treatment", "block", "trial_id", "event", "count", "looks"]
    waits = run.table("waits")
    if waits.empty:
        return pd.DataFrame(columns=columns)
    trials = run.valid_trials().set_index("trial_id")
    begin, end = (waits["trial_id"].map(trials[name]) for name in ("begin_ns", "end_ns"))
    inside = waits[(waits["t_ns"] >= begin) & (waits["t_ns"] <= end)]
    looks = inside.groupby("trial_id")["t_ns"].nunique()
    active = inside[inside["state"] == ACTIVE]
    if active.empty:
        return pd.DataFrame(columns=columns)
    active = active.assign(
        event=[
            event_name(str(kind), str(name))
            for kind, name in zip(active["wait_event_type"], active["wait_event"], strict=True)
        ]
    )
    keys = ["treatment", "block", "trial_id", "event"]
    sums = active.groupby(keys, sort=False, as_index=False)["count"].sum()
    counts: pd.DataFrame = sums.assign(looks=sums["trial_id"].map(looks))[columns]
    return counts


def event_name(kind: str, name: str) -> str:
    """Return the name of a wait event, the same for all versions of PostgreSQL."""
    if not kind:
        return NO_WAIT
    return f"{kind}: {ONE_NAME.get(name, name) if kind == 'IO' else name}"


def has_waits(run: Run) -> bool:
    """Return whether the run has samples of a database's waits."""
    return len(run.table("waits")) > 0
