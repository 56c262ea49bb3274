"""What comparisons say of rare failures, of times with failures and of refused trials, simulated.

Prints three tables; ``benchmarks/results/failed_requests.txt`` has them. "Before" is the interval
of the blocks alone (failures), the refusal of trials with more than 1% of failures (times), and
the answer of the valid trials alone (refused trials). The same seed gives the same tables.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pandas as pd

from benchmarks import bench
from perflab.analysis.decision import decide
from perflab.analysis.results import Compared
from perflab.instruments.requests import time_columns
from perflab.load.records.times import Times
from perflab.recordings.responses import at_least_column, at_most_column, lower_end_column
from perflab.statistics.block_ends import Ends
from perflab.statistics.comparison import Effect, effect_of, effect_within
from perflab.statistics.shares import BlocksOfShares
from perflab.statistics.two_samples import Rate

SEED, BLOCKS, REQUESTS = 20_261_128, 8, 1_250
SHARES = (
    (0.0, 0.0), (5e-5, 5e-5), (5e-4, 5e-4), (0.01, 0.01), (0.0, 5e-5), (0.0, 5e-4), (5e-5, 5e-4),
    (0.0, 0.002), (0.01, 0.012), (0.01, 0.02),
)  # fmt: skip
NOTHING = np.zeros(0)
NOISE, TIMEOUT_MS, USUAL_MS = 0.02, 1_000.0, 2.0
# Share of failures, their time in ms and the true ratio of the times of the others.
FAILING = {
    "none fail": ((0.0, 0.0), (0.0, 0.0), 1.0),
    "3% fail at once on both sides": ((0.03, 0.1), (0.03, 0.1), 1.0),
    "4% fail at once, against 4% late": ((0.04, 0.1), (0.04, 900.0), 1.0),
    "3% fail on both sides, 10% slower": ((0.03, 0.1), (0.03, 0.1), 1.1),
    "3% fail on both sides, 20% slower": ((0.03, 0.1), (0.03, 0.1), 1.2),
}
SLOW, SLOW_SHARE, OF_TRIALS = 1.4, 0.25, 0.03


def shares_table(random: np.random.Generator, sets: int) -> pd.DataFrame:
    """Return how often intervals hold the true difference of shares, and how often it is shown."""
    rows = []
    for old, new in SHARES:
        hits: Counter[str] = Counter()
        drawn = (random.binomial(REQUESTS, share, (sets, BLOCKS)) for share in (new, old))
        for failed_new, failed_old in zip(*drawn, strict=True):
            x = (failed_new - failed_old) / REQUESTS
            before = effect_of(pd.Series(x), "difference")
            failed = [Rate(int(n.sum()), BLOCKS * REQUESTS) for n in (failed_new, failed_old)]
            blocks = BlocksOfShares(x, x, x, 1 / REQUESTS, None, *failed)
            after = blocks.interval(0.95)
            for name, (low, high) in {
                "before": (before.low, before.high), "after": (after.low, after.high)
            }.items():  # fmt: skip
                hits[f"{name} held"] += low <= new - old <= high
                hits[f"{name} shown"] += low > 0 or high < 0
        names = ("before held", "after held", "before shown", "after shown")
        rows.append([f"{old:.3%}", f"{new:.3%}", *(f"{hits[name] / sets:.1%}" for name in names)])
    return pd.DataFrame(rows, columns=["old fails", "new fails", *names])


def trial(
    random: np.random.Generator, failing: tuple[float, float], ratio: float
) -> dict[str, float]:
    """Return the columns of a trial's times."""
    number = round(failing[0] * REQUESTS)
    usual = USUAL_MS * ratio * math.exp(NOISE * random.standard_normal())
    known = 1e6 * usual * np.exp(0.2 * random.standard_normal(REQUESTS - number))
    times = Times(
        known, NOTHING, np.zeros(len(known)), NOTHING, failed=np.zeros(number),
        timeout_ns=TIMEOUT_MS * 1e6,
    )  # fmt: skip
    numbers = {f"{name}_ms": number for name, number in times.numbers((50, 99)).items()}
    return time_columns(numbers)


def effect_on(response: str, trials: list[list[dict[str, float]]]) -> Effect | None:
    """Return the effect of new against old on a time; None where nothing limits it."""

    def ends(rows: list[dict[str, float]]) -> Ends:
        table = pd.DataFrame(rows)
        nothing = pd.Series(math.nan, index=table.index)
        value = table[response].fillna(table.get(at_least_column(response), nothing))
        high = table.get(at_most_column(response), nothing).fillna(value)
        high = high.where(table[response].notna(), math.inf)
        low = table.get(lower_end_column(response), nothing).fillna(value)
        return Ends(low, high, value).logs(response)

    between = ends(trials[0]).minus(ends(trials[1]))
    return effect_within(between) if np.isfinite(between.low).all() else None


def times_table(random: np.random.Generator, sets: int) -> pd.DataFrame:
    """Return what is said of times under which failures."""
    rows = []
    for name, (new, old, ratio) in FAILING.items():
        for response in ("mean_ms", "p50_ms", "p99_ms"):
            said: Counter[str] = Counter()
            held = compared = 0
            for _ in range(sets):
                trials = [
                    [trial(random, failing, truth) for _ in range(BLOCKS)]
                    for failing, truth in ((new, ratio), (old, 1.0))
                ]
                effect = effect_on(response, trials)
                if effect is None:
                    said["not compared"] += 1
                    continue
                compared += 1
                held += effect.low <= ratio <= effect.high
                said[decide(effect).result] += 1
            said["different"] = said[Compared.MORE] + said[Compared.LESS]
            words = ("different", Compared.SAME, Compared.NOT_DECIDED, "not compared")
            rows.append(
                [
                    name, response, "compared" if new[0] <= 0.01 else "every trial refused",
                    *(f"{said[word] / sets:.0%}" for word in words),
                    f"{held / compared:.0%}" if compared else "–",
                ]
            )  # fmt: skip
    results = ["different", "same", "not decided", "not compared"]
    heads = ["failures", "time", "before", *results, "held"]
    return pd.DataFrame(rows, columns=heads)


def refused_table(random: np.random.Generator, sets: int) -> pd.DataFrame:
    """Return what is told where the slow trials of one side are refused."""
    rows = []
    for slow in (0, 2):
        truth = slow / BLOCKS * math.log(SLOW)
        counts: Counter[str] = Counter()
        estimates = []
        for _ in range(sets):
            logs = OF_TRIALS * math.sqrt(2) * random.standard_normal(BLOCKS)
            logs[:slow] += math.log(SLOW)
            valid, whole = effect_of(pd.Series(logs[slow:])), effect_of(pd.Series(logs))
            estimates.append((valid.estimate, whole.estimate))
            counts["valid"] += valid.low <= math.exp(truth) <= valid.high
            counts["whole"] += whole.low <= math.exp(truth) <= whole.high
        valid_median, whole_median = np.median(estimates, axis=0)
        rows.append(
            [
                f"{slow} of {BLOCKS} at +40%", f"{math.expm1(truth):+.1%}",
                f"{valid_median - 1:+.1%}", f"{counts['valid'] / sets:.0%}",
                f"{whole_median - 1:+.1%}", f"{counts['whole'] / sets:.0%}",
            ]
        )  # fmt: skip
    heads = ["refused", "truth of all", "before: told", "holds it", "now also told", "holds it "]
    return pd.DataFrame(rows, columns=heads)


def main() -> None:
    """Simulate, and print the tables."""
    given = bench.options(__doc__, sets=(400, "simulated runs for each row"), seed=SEED)
    random = np.random.default_rng(given.seed)
    print(f"Seed {given.seed}, {given.sets} runs of {BLOCKS} blocks a row.\n")
    print(f"Difference of the shares of failures, {BLOCKS} x {REQUESTS:,} requests a side:\n")
    print(shares_table(random, given.sets).to_string(index=False), "\n")
    of_times = given.sets // 8
    print(f"Times of sides that fail alike (1 s time-out, 2 ms usual, {of_times} runs a row):\n")
    print(times_table(random, given.sets // 8).to_string(index=False), "\n")
    print("The slow trials of one side are refused:\n")
    print(refused_table(random, given.sets).to_string(index=False))


if __name__ == "__main__":
    main()
