"""How often equal treatments are certainly different: shared starts, drift, runs apart in time.

Prints the tables of ``benchmarks/results/units.txt``, before and after each start counted once,
every second block mirrored the one before, and runs had to alternate. The same seed gives the same
tables.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks import bench
from perflab.analysis.run_sides import times_apart
from perflab.trials.designs import mirrored_orders, random_orders
from tests.support.simulations import run_drift, shared_starts

SEED = 20_261_128
START, TRIAL, DRIFT = 0.015, 0.02, 0.5
ORDERS = {"before": random_orders, "after": mirrored_orders}
OF_RUNS = ("AAABBB", "ABABAB", "ABBAAB", "AAAAABBBBB", "ABBAABBAAB", "ABBAABB", "AABBBBAA")


def starts_table(random: np.random.Generator, sets: int) -> pd.DataFrame:
    """Return false alarms and power with blocks, and with starts, as the unit."""
    rows = []
    for blocks, fresh in ((16, 4), (24, 4), (12, 2), (16, 2), (8, 1)):
        few = (random, blocks, fresh, START, TRIAL, sets)
        rows.append(
            {
                "blocks": blocks,
                "of a start": fresh,
                "before: equal": shared_starts.false_alarms(*few, as_blocks=True).text(),
                "after: equal": shared_starts.false_alarms(*few).text(),
                "before: 5% slower": shared_starts.false_alarms(*few, True, 1.05).text(),
                "after: 5% slower": shared_starts.false_alarms(*few, False, 1.05).text(),
            }
        )
    return pd.DataFrame(rows)


def blocks_table(random: np.random.Generator, sets: int) -> pd.DataFrame:
    """Return false alarms under a drift of 50% over the run, and power without a drift."""
    rows = []
    for treatments in (2, 3, 5):
        for blocks in (3, 4, 5, 6, 8, 16):
            row: dict[str, object] = {"treatments": treatments, "blocks": blocks}
            for name, orders in ORDERS.items():
                few = (random, orders, treatments, blocks)
                for shape in run_drift.SHAPES:
                    for noise in (0.01, 0.02, 0.05):
                        found = run_drift.block_alarms(*few, shape, DRIFT, noise, sets)
                        row[f"{name}: {shape}, noise {noise:.0%}"] = f"{found.hits / sets:.1%}"
                for drift in (0.0, DRIFT):
                    found = run_drift.block_alarms(*few, "linear", drift, 0.02, sets, 1.1)
                    row[f"{name}: 10% found, drift {drift:.0%}"] = f"{found.hits / sets:.0%}"
            rows.append(row)
    return pd.DataFrame(rows)


def runs_table(random: np.random.Generator, sets: int) -> pd.DataFrame:
    """Return how often runs are certainly different, and whether they may be called so."""
    rows = []
    for order in OF_RUNS:
        row: dict[str, object] = {"order": order}
        for shape in run_drift.SHAPES:
            for noise in (0.01, 0.05):
                found = run_drift.false_alarms(random, order, shape, DRIFT, noise, sets)
                row[f"before: {shape}, noise {noise:.0%}"] = f"{found.hits / sets:.1%}"
        for drift in (0.0, 0.1, DRIFT):
            found = run_drift.false_alarms(random, order, "linear", drift, 0.02, sets, 1.1)
            row[f"10% found, drift {drift:.0%}"] = f"{found.hits / sets:.0%}"
        times = ([at for at, name in enumerate(order) if name == side] for side in "AB")
        row["after"] = "never certain" if times_apart(*times) else "as before"
        rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    """Print the tables."""
    given = bench.options(__doc__, sets=(150, "simulated runs of each cell"))
    random = np.random.default_rng(SEED)
    starts = starts_table(random, 3 * given.sets)
    print(f"# Starts that differ by {START:.1%}, trials by {TRIAL:.0%}\n")
    print(starts.to_string(index=False), flush=True)
    print(f"\n# Blocks: certain of equal treatments under a drift of {DRIFT:.0%} over the run\n")
    print(blocks_table(random, given.sets).T.to_string(header=False), flush=True)
    print(f"\n# Runs: certain of equal sides under a drift of {DRIFT:.0%} over all runs\n")
    print(runs_table(random, given.sets).T.to_string(header=False))


if __name__ == "__main__":
    main()
