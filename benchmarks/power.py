"""What a comparison finds at which noise: blocks needed, predicted and simulated.

Two treatments in random blocks, trials with log-normal noise; "found" means that the 95% interval
of the ratio lies on the right side of 1. ``lab_check`` tells the noise of trials on a machine.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
import pandas as pd

from perflab.analysis.methods.comparison import compare
from perflab.analysis.treatments.decision import blocks_needed, smallest_effect

NOISES = (0.02, 0.05, 0.10, 0.20)
BLOCKS = (6, 12, 24, 48)


def found(random: np.random.Generator, blocks: int, ratio: float, noise: float, sets: int) -> float:
    """Return the share of simulated runs in which the effect is found."""
    hits = 0
    for _ in range(sets):
        logs = noise * random.standard_normal((blocks, 2))
        effect = compare(pd.Series(ratio * np.exp(logs[:, 0])), pd.Series(np.exp(logs[:, 1])))
        hits += effect.low > 1
    return hits / sets


def main() -> None:
    """Simulate and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ratio", type=float, default=1.05)
    parser.add_argument("--sets", type=int, default=300)
    given = parser.parse_args()
    random = np.random.default_rng(1)
    effect = f"{given.ratio - 1:.0%}"
    heads = "".join(f"{f'in {blocks}':>9}" for blocks in BLOCKS)
    print(f"{'noise of':>9}  {'blocks for':>11}  {'smallest in':>12}   {effect} found")
    print(f"{'a trial':>9}  {effect + ', 80%':>11}  {'12 blocks':>12}{heads}")
    for noise in NOISES:
        pair = noise * math.sqrt(2)
        needed = blocks_needed(math.log(given.ratio), pair)
        smallest = math.expm1(smallest_effect(pair, 12))
        shares = "".join(
            f"{found(random, blocks, given.ratio, noise, given.sets):>9.0%}" for blocks in BLOCKS
        )
        print(f"{noise:>9.0%}  {needed:>11}  {smallest:>12.1%}{shares}")


if __name__ == "__main__":
    main()
