"""Claims 1, 3 and 4 of the inference study as shares of time, judged by rules fixed beforehand.

Each is measured in runs that hold "on", "off" and "no database write" in the same blocks, a share a
block, and estimated over blocks as any effect is (Hodges-Lehmann with the signed-rank interval from
6 blocks on, a t interval below). With X throughput and R mean response time of a closed loop:

=======  =====================================================  ====================================
claim    share                                                  holds where
=======  =====================================================  ====================================
1        1 - R(no write) / R(on): of the response time, what    more than half
         goes with the write
3        (1/X(on) - 1/X(off)) / (1/X(on) - 1/X(no write)): of   more than half
         the write's cost, what goes with waiting for the flush
4, CPU   with "on", the time that the cores which services may  less than 80%
         use were busy, with whatever ran on them
4, I/O   with "on", flush / (flush + core): of the time that    more than half
         backends waited for the flush and threads of services
         for a core, what was for the flush
=======  =====================================================  ====================================

*Shown* is a claim whose 95% interval lies wholly where it holds, *opposite* one whose interval lies
wholly elsewhere, else it is *not shown*. Claim 4 is shown where both its shares are. A published
share is compared by size: it *agrees* where the 90% interval lies within a factor of 1.25 of it, is
*contradicted* where the 95% interval lies outside of that, else *undecided*.

Waits for the flush are those of database backends (``pg_stat_activity``); waits for a core are of
threads, summed (:mod:`perflab.analysis.trials.core_accounts`): both are seconds a second.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import pandas as pd

from perflab.analysis.methods.comparison import Effect, effect_of
from perflab.analysis.trials.core_accounts import CoreAccount, core_time, service_cores
from perflab.analysis.trials.waits import active_counts, waits_for_flush
from perflab.recordings import Run, published_value
from perflab.systems.inference.published import COMMITS, STUDY, TABLE

FACTOR = "synchronous_commit"
LEVELS = ("on", "off", "none")
HALF, BUSY = 0.5, 0.8
ZONE = 1.25
SMALLEST_N = 3
SIZE_CONFIDENCE = 0.90


class Judgement(StrEnum):
    """What a run says of a claim about a share."""

    SHOWN = "shown"
    OPPOSITE = "opposite"
    NOT_SHOWN = "not shown"


class Size(StrEnum):
    """What a run says of a published share."""

    AGREES = "size agrees"
    CONTRADICTED = "size contradicted"
    UNDECIDED = "size undecided"


@dataclass(frozen=True)
class Share:
    """A claim about a share, before anything is measured."""

    name: str
    claim: str
    what: str
    limit: float
    above: bool = True
    published: float = math.nan


@dataclass(frozen=True)
class JudgedShare:
    """A claim with its share over blocks (None: there is none), and what that says of it."""

    share: Share
    effect: Effect | None
    judgement: Judgement
    size: Size | None
    left_out: int = 0
    note: str = ""


def shares() -> tuple[Share, ...]:
    """Return the claims, with what was published of them."""
    on, off, none = (
        published_value(STUDY, TABLE, COMMITS[level], "throughput") for level in LEVELS
    )
    before, after = (
        published_value(STUDY, TABLE, COMMITS[level], "mean_latency") for level in ("on", "none")
    )
    return (
        Share(
            "claim 1",
            "database writes dominate end-to-end latency",
            "of the mean response time, what goes with the write",
            HALF,
            published=1 - after / before,
        ),
        Share(
            "claim 3",
            "the commit's disk flush is the bottleneck",
            "of what the write costs, what goes with waiting for the flush",
            HALF,
            published=(1 / on - 1 / off) / (1 / on - 1 / none),
        ),
        Share(
            "claim 4, CPU",
            "the system is not bound by CPU",
            "of the time with commit on, when the services' cores were busy",
            BUSY,
            above=False,
        ),
        Share(
            "claim 4, I/O",
            "the system is bound by I/O",
            "of waiting for the flush or for a core with commit on, what is for the flush",
            HALF,
        ),
    )


def has_all_commits(run: Run) -> bool:
    """Return whether a run compares on, off and no database write."""
    levels = {item.levels.get(FACTOR) for item in run.record.treatments}
    return levels >= set(LEVELS)


def judged_shares(run: Run) -> list[JudgedShare]:
    """Measure and judge the claims on the valid trials of a run that has all three."""
    ways: dict[str, Callable[[Run], pd.Series[float]]] = {
        "claim 1": _of_the_write,
        "claim 3": _of_the_flush,
        "claim 4, CPU": _of_the_cores,
        "claim 4, I/O": _of_waiting,
    }
    notes = {"claim 4, CPU": _own_share(run)}
    return [
        replace(judged(share, ways[share.name](run)), note=notes.get(share.name, ""))
        for share in shares()
    ]


def _own_share(run: Run) -> str:
    """Say how much of their cores the services themselves used: others may have run there too."""
    accounts = core_time(run)
    on = run.record.selected({FACTOR: "on"})
    own = [CoreAccount.of(accounts, name) for name in on]
    busy = [each.busy() for each in own if each.services]
    return f"services alone {busy[0]:.0%}" if busy else ""


def judged(share: Share, by_block: pd.Series[float]) -> JudgedShare:
    """Judge a claim by its share in every block; NaN where a block lacks what it needs."""
    known = by_block.dropna()
    left_out = len(by_block) - len(known)
    if known.empty:
        return JudgedShare(share, None, Judgement.NOT_SHOWN, None, left_out)
    effect = effect_of(by_block, scale="difference")
    if effect.n < SMALLEST_N:
        return JudgedShare(share, effect, Judgement.NOT_SHOWN, None, left_out)
    return JudgedShare(share, effect, _judgement(share, effect), _size(share, known), left_out)


def _judgement(share: Share, effect: Effect) -> Judgement:
    above, below = effect.low > share.limit, effect.high < share.limit
    if above or below:
        return Judgement.SHOWN if above == share.above else Judgement.OPPOSITE
    return Judgement.NOT_SHOWN


def _size(share: Share, known: pd.Series[float]) -> Size | None:
    if not math.isfinite(share.published):
        return None
    low, high = share.published / ZONE, share.published * ZONE
    wide = effect_of(known, scale="difference")
    if wide.high < low or wide.low > high:
        return Size.CONTRADICTED
    narrow = effect_of(known, SIZE_CONFIDENCE, scale="difference")
    return Size.AGREES if low <= narrow.low and narrow.high <= high else Size.UNDECIDED


def _levels_by_block(run: Run, response: str) -> pd.DataFrame:
    """Return a response of the valid trials: a row per block, a column per level."""
    level = {item.name: item.levels.get(FACTOR, "") for item in run.record.treatments}
    trials = run.valid_trials()
    if response not in trials:
        trials = trials.assign(**{response: math.nan})
    wide = trials.assign(level=trials["treatment"].map(level)).pivot(
        index="block", columns="level", values=response
    )
    blocks = pd.RangeIndex(run.record.blocks)
    return wide.reindex(index=blocks, columns=list(LEVELS)).astype(float)


def _of_the_write(run: Run) -> pd.Series[float]:
    means = _levels_by_block(run, "mean_ms")
    return 1 - means["none"] / means["on"]


def _of_the_flush(run: Run) -> pd.Series[float]:
    """Return the flush's share of the write's cost; NaN where the write cost nothing at all."""
    cost = 1 / _levels_by_block(run, "throughput_rps")
    write = cost["on"] - cost["none"]
    return ((cost["on"] - cost["off"]) / write).where(write > 0)


def _with_commit_on(run: Run) -> pd.DataFrame:
    names = run.record.selected({FACTOR: "on"})
    trials = run.valid_trials()
    return trials[trials["treatment"].isin(names)]


def _by_block(run: Run, trials: pd.DataFrame, values: list[float]) -> pd.Series[float]:
    found = pd.Series(values, index=trials["block"].to_numpy(), dtype=float)
    return found.reindex(pd.RangeIndex(run.record.blocks))


def _of_the_cores(run: Run) -> pd.Series[float]:
    trials = _with_commit_on(run)
    cores = [f"core {core}" for core in service_cores(run.record)]
    samples = run.samples(list(trials["trial_id"]))
    values = []
    for row in trials.to_dict("records"):
        own = samples[samples["trial_id"] == row["trial_id"]]
        busy = [
            _busy_share(own[own["service"] == core], row["begin_ns"], row["end_ns"])
            for core in cores
        ]
        values.append(float(np.mean(busy)) if busy else math.nan)
    return _by_block(run, trials, values)


def _busy_share(own: pd.DataFrame, begin_ns: int, end_ns: int) -> float:
    """Return busy time over wall time of a core, by interpolating cumulative time."""
    if len(own) < 2 or end_ns <= begin_ns:
        return math.nan
    used = np.interp([begin_ns, end_ns], own["t_ns"].to_numpy(), own["cpu_ns"].to_numpy())
    return float((used[1] - used[0]) / (end_ns - begin_ns))


def _of_waiting(run: Run) -> pd.Series[float]:
    trials = _with_commit_on(run)
    counts = active_counts(run)
    columns = [name for name in trials.columns if str(name).startswith("core_wait_share_")]
    values = []
    for row in trials.to_dict("records"):
        own = counts[counts["trial_id"] == row["trial_id"]]
        waiting = own["event"].map(waits_for_flush).astype(bool)
        flush = own.loc[waiting, "count"].sum() / own["looks"].iloc[0] if len(own) else math.nan
        core = sum(float(row[name]) for name in columns) if columns else math.nan
        values.append(flush / (flush + core) if flush + core > 0 else math.nan)
    return _by_block(run, trials, values)
