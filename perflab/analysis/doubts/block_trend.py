"""Response times that rise or fall from block to block: the load changes what it measures.

Services start afresh for every block, but what they write to files or a database stays. Where each
request adds to what all requests read, later blocks measure another state than earlier ones.

A trend is told where the blocks' mean logs, over all treatments, are ordered in a way that equal
blocks have in at most 1% of runs, and where every treatment's response time changes by 10% or more
in the same direction, and where both hold as well for times in units of the CPU-speed probe: a
machine that becomes slower is no trend of the service. Beside much other work the probe says
little, and a trend is seldom told.
``benchmarks/results/block_trend.txt`` has how often that errs.

No order of three to five blocks is that rare. There a rise is told where the response time of every
later block is 25% above that of the first or more, in every treatment. Simulated blocks of two
equal treatments rise so in 0.02% of runs at most if trials differ by 5% or 10%, and if blocks
differ by 10% as well, in 1.1%, 0.4% and 0.2% (3, 4 and 5 blocks). Of one treatment alone it is up
to 5%. A fall is not told: a first block is often slow by itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perflab.recordings import Run
from perflab.recordings.responses import drift_column

TIME, SPEED = "mean_ms", "cpu_probe_before_ms"
# Six blocks can have such a p, and five cannot.
MOST_P, LEAST_CHANGE = 0.01, math.log(1.1)
BLOCKS_FOR_P, FEWEST_BLOCKS, LEAST_OF_FEW = 6, 3, math.log(1.25)
READING = ("GET", "HEAD", "OPTIONS")
# Of the trials of a treatment in which response time rises within the load.
FEWEST_TRIALS, USUALLY = 5, 0.9


@dataclass(frozen=True)
class BlockTrend:
    """How much response times change from the first block to the last, in every treatment.

    ``changes`` are of the logs, one for each treatment; ``writing`` are the methods of the load
    that write.
    """

    changes: tuple[float, ...]
    writing: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return ``response time rose by 20% to 45% from the first block to the last``."""
        low, high = (
            f"{abs(math.expm1(change)):.0%}"
            for change in sorted((min(self.changes), max(self.changes)), key=abs)
        )
        verb = "rose" if self.changes[0] > 0 else "fell"
        size = low if low == high else f"{low} to {high}"
        return f"response time {verb} by {size} from the first block to the last"

    @property
    def cause(self) -> str:
        """Return what may be the cause, in a few words."""
        if self.writing:
            return f"the load writes ({', '.join(self.writing)})"
        return "something outlives the blocks"


def block_trend(run: Run) -> BlockTrend | None:
    """Return the trend of a run's response times over its blocks; None where none is told."""
    trials = run.valid_trials()
    if not {TIME, SPEED} <= set(trials.columns):
        return None
    times, speeds = (
        trials.pivot_table(index="block", columns="treatment", values=name).reindex(
            columns=[item.name for item in run.record.treatments]
        )
        for name in (TIME, SPEED)
    )
    known = times.notna().all(axis=1) & (times > 0).all(axis=1)
    # A pivot leaves out blocks without any value.
    changes = changes_of(times[known], speeds.reindex(times.index)[known].median(axis=1))
    if not changes:
        return None
    return BlockTrend(changes, _writing(run))


def _writing(run: Run) -> tuple[str, ...]:
    """Return the methods of a run's load that write."""
    workloads = [run.record.whole(item.name).get("workload") for item in run.record.treatments]
    # Of a mix, "request" is the first.
    mixes = [item.get("mix") or [item] for item in workloads if item]
    methods = [one["request"].get("method", "GET") for mix in mixes for one in mix]
    return tuple(dict.fromkeys(m for m in methods if m not in READING))


def rise_within(run: Run) -> str:
    """Return how response times rise within the loads of a run; empty where they do not.

    They do if in every treatment they are 10% higher at a load's end than over the whole of it, in
    most trials, and in nine of ten are higher at all. Where each request makes the next slower, the
    faster side of a closed loop has the more to carry.
    """
    trials, column = run.valid_trials(), drift_column(TIME)
    if column not in trials:
        return ""
    of_each = [part[column].dropna() for _, part in trials.groupby("treatment", sort=False)]
    if len(of_each) < len(run.record.treatments) or any(
        len(drifts) < FEWEST_TRIALS
        or drifts.median() < LEAST_CHANGE
        or (drifts > 0).mean() < USUALLY
        for drifts in of_each
    ):
        return ""
    medians = [drifts.median() for drifts in of_each]
    low, high = (f"{math.exp(end):.2g}" for end in (min(medians), max(medians)))
    size = low if low == high else f"{low} to {high}"
    why = f" ({', '.join(_writing(run))} writes)" if _writing(run) else ""
    return (
        f"response time rises within each load: at its end it is {size} times its mean{why}. If "
        "each request makes the next slower, the faster side has more to carry, and a fixed "
        "number of requests a second (--rate) compares both with as much"
    )


def changes_of(times: pd.DataFrame, speeds: pd.Series[float]) -> tuple[float, ...]:
    """Return the changes of the log times, one for each treatment; none where no trend is told.

    ``times`` have a row for each block and a column for each treatment, ``speeds`` the time of the
    CPU-speed probe in each block (NaN: unknown).
    """
    logs = np.log(times.to_numpy(float))
    probes = np.log(speeds.to_numpy(float))
    raw = _changes(logs)
    if raw and np.isfinite(probes).all():
        corrected = _changes(logs - probes[:, None])
        return raw if corrected and (corrected[0] > 0) == (raw[0] > 0) else ()
    return raw


def _changes(logs: np.ndarray) -> tuple[float, ...]:
    """Return the changes of the columns, if all change by enough in one direction, in order.

    Whether they are in order is told by the test of Mann and Kendall (M. G. Kendall, Rank
    Correlation Methods, 1948), and a change by the median slope of all pairs of blocks (P. K. Sen,
    J. Am. Stat. Assoc. 63, 1968), which a single block that lies apart does not move.
    """
    if len(logs) < BLOCKS_FOR_P:
        rises = logs[1:] - logs[:1]
        is_told = len(logs) >= FEWEST_BLOCKS and bool((rises >= LEAST_OF_FEW).all())
        return tuple(map(float, rises[-1])) if is_told else ()

    from scipy import stats

    p = float(stats.kendalltau(np.arange(len(logs)), logs.mean(axis=1)).pvalue)
    # It is NaN where all blocks are equal.
    if not p <= MOST_P:
        return ()
    changes = tuple(float(stats.theilslopes(column).slope) * (len(logs) - 1) for column in logs.T)
    is_one_way = min(changes) >= LEAST_CHANGE or max(changes) <= -LEAST_CHANGE
    return changes if is_one_way else ()
