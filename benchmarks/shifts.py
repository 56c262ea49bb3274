"""How often is a series of runs called changed? The lab's test beside tests that permute.

Without a change alarms should be at most 5%, whatever the runs' spreads; with one of two deviations
the share found is the power. The peers: a CUSUM and its rank form, judged by permutations.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from scipy import stats

from perflab.analysis.curves.shifts import SMALLEST_PART, shift_p

LENGTHS = (12, 20, 30)
PERMUTATIONS = 999
SPREADS = ("equal", "first half x 4", "first fifth x 5")


def spreads(n: int, kind: str) -> np.ndarray:
    """Return the deviation of each run."""
    found = np.ones(n)
    if kind == "first half x 4":
        found[: n // 2] = 4
    elif kind == "first fifth x 5":
        found[: max(3, n // 5)] = 5
    return found


def permuted(x: np.ndarray, random: np.random.Generator) -> float:
    """Return the p-value of the largest standardised CUSUM among permutations."""
    orders = np.argsort(random.random((PERMUTATIONS, len(x))), axis=-1)
    places = np.arange(SMALLEST_PART, len(x) - SMALLEST_PART + 1)
    deviations = np.sqrt(places * (len(x) - places))

    def statistic(values: np.ndarray) -> np.ndarray:
        sums = np.cumsum(values, axis=-1)[..., places - 1]
        largest: np.ndarray = np.abs(sums / deviations).max(axis=-1)
        return largest

    centred = x - x.mean()
    others = statistic(centred[orders])
    return float((1 + (others >= statistic(centred)).sum()) / (PERMUTATIONS + 1))


def main() -> None:
    """Simulate and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=2000)
    given = parser.parse_args()
    random = np.random.default_rng(1)
    tests: dict[str, Callable[[np.ndarray], float]] = {
        "the lab's": shift_p,
        "CUSUM": lambda x: permuted(x, random),
        "of ranks": lambda x: permuted(stats.rankdata(x), random),
    }
    print(f"{'runs':<6}{'spreads, or change at':<24}" + "".join(f"{name:>12}" for name in tests))
    for n in LENGTHS:
        for kind in SPREADS:
            _print(n, kind, tests, given.sets, lambda: spreads(n, kind) * random.normal(size=n))  # noqa: B023
        for place in (n // 2, n - 6, n - 3):
            after = 2.0 * (np.arange(n) >= place)
            _print(n, f"change at {place}", tests, given.sets,
                   lambda: after + random.normal(size=n))  # noqa: B023  # fmt: skip


def _print(
    n: int,
    words: str,
    tests: dict[str, Callable[[np.ndarray], float]],
    sets: int,
    drawn: Callable[[], np.ndarray],
) -> None:
    drawings = [drawn() for _ in range(sets)]
    shares = [sum(test(x) <= 0.05 for x in drawings) / sets for test in tests.values()]
    print(f"{n:<6}{words:<24}" + "".join(f"{share:>12.1%}" for share in shares), flush=True)


if __name__ == "__main__":
    main()
