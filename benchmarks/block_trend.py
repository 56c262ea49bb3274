"""How often a trend from block to block is told where there is none, and where there is one.

Two treatments are simulated that share the noise of their block, each trial with noise of its own,
and :func:`perflab.analysis.doubts.block_trend.changes_of` says whether a trend is told. The speed
of the machine may drift, which the CPU-speed probe sees with an error of 2%, or of 50% beside much
other work.

    .venv/bin/python -m benchmarks.block_trend > benchmarks/results/block_trend.txt

The same seed gives the same table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks import bench
from perflab.analysis.doubts.block_trend import changes_of

SEED, SETS = 20_261_128, 300
BLOCKS = (6, 8, 10, 16)
# Of a trial, and of a block, which both of its trials share.
NOISES = ((0.02, 0.02), (0.05, 0.10), (0.20, 0.20))
TREATMENTS = 2


@dataclass(frozen=True)
class Truth:
    """What happens over a run, as factors on response times from its begin to its end.

    ``growth`` is of what the load measures, ``speed`` of the machine; of a machine's factor
    ``bound`` is the part that response times follow (1: they are CPU time). ``first`` is a factor
    on the first block alone, ``walk`` the noise of a step of the machine's speed, and
    ``probe_noise`` that of the probe in a block.
    """

    growth: float = 1.0
    speed: float = 1.0
    bound: float = 1.0
    first: float = 1.0
    walk: float = 0.0
    probe_noise: float = 0.02


FALSE = {
    "equal blocks": Truth(),
    "machine 1.5 times as slow at the end": Truth(speed=1.5),
    "the same, times half CPU": Truth(speed=1.5, bound=0.5),
    "the same, times not CPU": Truth(speed=1.5, bound=0.0),
    "the machine's speed walks, 10% a block": Truth(walk=0.1),
    "machine 1.5 times as slow at the end, noisy probe": Truth(speed=1.5, probe_noise=0.5),
    "first block 1.4 times as long": Truth(first=1.4),
}
TRUE = {
    "1.2 times as long at the end": Truth(growth=1.2),
    "1.5 times": Truth(growth=1.5),
    "2.2 times": Truth(growth=2.2),
    "2.2 times, noisy probe": Truth(growth=2.2, probe_noise=0.5),
    "1.5 times, and the machine 1.5 times as slow": Truth(growth=1.5, speed=1.5),
}


def told_share(
    random: np.random.Generator, truth: Truth, blocks: int, noises: tuple[float, float], sets: int
) -> float:
    """Return the share of simulated runs in which a trend is told."""
    trial_noise, block_noise = noises
    times, told = np.linspace(0, 1, blocks), 0
    for _ in range(sets):
        steps = random.normal(0, truth.walk, blocks) if truth.walk else np.zeros(blocks)
        machine = math.log(truth.speed) * times + np.cumsum(steps)
        common = math.log(truth.growth) * times + truth.bound * machine
        common[0] += math.log(truth.first)
        common += random.normal(0, block_noise, blocks)
        logs = common[:, None] + random.normal(0, trial_noise, (blocks, TREATMENTS))
        probes = machine + random.normal(0, truth.probe_noise, blocks)
        told += bool(changes_of(pd.DataFrame(np.exp(logs)), pd.Series(np.exp(probes))))
    return told / sets


def table(truths: dict[str, Truth], sets: int) -> str:
    """Return the shares by truth and noise, for each number of blocks."""
    random, rows = np.random.default_rng(SEED), []
    for name, truth in truths.items():
        for noises in NOISES:
            shares = (told_share(random, truth, n, noises, sets) for n in BLOCKS)
            noise = f"{noises[0]:.0%}, {noises[1]:.0%}"
            rows.append([name, noise, *(f"{share:.1%}" for share in shares)])
    heads = ["what happens", "noise of a trial, a block", *(f"n = {n}" for n in BLOCKS)]
    return bench.markdown(pd.DataFrame(rows, columns=heads), "---:").rstrip()


def main() -> None:
    """Simulate, and print the tables."""
    given = bench.options(__doc__, sets=(SETS, "simulated runs for each cell"))
    print(f"Runs in which a trend is told, of {given.sets:,} a cell.\n")
    print("No trend of the service (before: there was no such flag):\n")
    print(table(FALSE, given.sets))
    print("\nA trend of the service:\n")
    print(table(TRUE, given.sets // 2))


if __name__ == "__main__":
    main()
