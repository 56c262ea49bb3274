"""How often are two sides of equal runs called different? The trial or the run as the unit.

Every run of the same code has a level of its own (processes laid out anew, another hour); its
trials scatter around it. Alarms should be at most 5%.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from perflab.analysis.methods.two_samples import unpaired
from perflab.analysis.treatments.between_runs import compared

TRIALS, NOISE = 8, 0.05
BETWEEN = (0.0, 0.01, 0.02, 0.05, 0.1)
SIDES = ((1, 1), (3, 3), (3, 5), (5, 5), (3, 10))


def side(random: np.random.Generator, runs: int, between: float) -> list[np.ndarray]:
    """Return the log responses of each run's trials."""
    levels = between * random.normal(size=(runs, 1))
    return list(levels + NOISE * random.normal(size=(runs, TRIALS)))


def alarms(runs: tuple[int, int], between: float, sets: int, effect: float = 0.0) -> float:
    """Return how often sides that differ by ``effect`` on logs are called different."""
    random = np.random.default_rng(1)
    hits = 0
    for _ in range(sets):
        a, b = (side(random, count, between) for count in runs)
        _, low, high, _ = compared(a, [logs + effect for logs in b])
        hits += low > 1 or high < 1
    return hits / sets


def alarms_of_trials(runs: tuple[int, int], between: float, sets: int) -> float:
    """Return the same where trials were taken for the unit."""
    random = np.random.default_rng(1)
    hits = 0
    for _ in range(sets):
        a, b = (np.exp(np.concatenate(side(random, count, between))) for count in runs)
        _, low, high, _ = unpaired(b, a)
        hits += low > 1 or high < 1
    return hits / sets


def main() -> None:
    """Simulate and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=2000)
    given = parser.parse_args()
    print(f"{TRIALS} trials a run, noise of a trial {NOISE:.0%}\n")
    print(f"{'runs a side':<12}{'between runs':>13}{'unit: run':>11}{'trial':>8}{'15% found':>11}")
    for runs in SIDES:
        for between in BETWEEN:
            # One run each has no other unit than its trials: it is never called worse.
            own = alarms(runs, between, given.sets) if min(runs) > 1 else math.nan
            found = alarms(runs, between, given.sets, math.log(1.15)) if min(runs) > 1 else math.nan
            trials = alarms_of_trials(runs, between, given.sets)
            print(f"{runs!s:<12}{between:>13.0%}{own:>11.1%}{trials:>8.1%}{found:>11.1%}")


if __name__ == "__main__":
    main()
