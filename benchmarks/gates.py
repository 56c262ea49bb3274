"""How often a gate fails: a version that is just at its bounds, and one beyond them.

Block values of the responses are drawn, independent or moving together, and go through
:func:`perflab.statistics.comparison.effect_of` and
:func:`perflab.analysis.gates.thresholds.judged`. Every true ratio is at its bound (a gate that
fails errs), or beyond all of them by the given share (one that does not fail has missed it). The
duel has the blocks that it takes by itself: one more than the bounds need, and ten at least.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd

from perflab.analysis.evaluation import Finding
from perflab.analysis.gates.gate_blocks import SPARE_BLOCKS
from perflab.analysis.gates.thresholds import Threshold, judged, thresholds_of
from perflab.analysis.results import Gate
from perflab.statistics.comparison import effect_of
from perflab.statistics.families import blocks_for_one

SETS, SEED, NOISE, BOUND, LEAST_BLOCKS = 400, 20_261_128, 0.02, 1.1, 10
GATES = {
    1: ["mean>1.1"],
    3: ["mean>1.1", "p99>1.1", "cpu>1.1"],
    6: ["mean>1.1", "p50>1.1", "p99>1.1", "cpu>1.1", "memory>1.1", "throughput<0.909"],
}
BEYOND = {"at the bounds": 0.0, "2% beyond": 0.02, "5% beyond": 0.05}


def fails(
    gate: list[Threshold], blocks: int, beyond: float, together: bool, random: np.random.Generator
) -> bool:
    """Return whether a gate fails in one drawn duel."""
    common, findings = random.standard_normal(blocks) * together, []
    for threshold in gate:
        own = random.standard_normal(blocks)
        noise = NOISE * (common + own) / math.sqrt(1 + together)
        true = math.log(BOUND) + math.log1p(beyond)
        effect = effect_of(pd.Series(noise + (true if threshold.above else -true)))
        contrast = SimpleNamespace(response=threshold.response)
        finding: Any = SimpleNamespace(effect=effect, contrast=contrast, refused=None)
        findings.append(cast(Finding, finding))
    return any(each.result is Gate.FAILED for each in judged(gate, findings))


def main() -> None:
    """Print the table."""
    random, rows = np.random.default_rng(SEED), []
    for number, texts in GATES.items():
        gate = thresholds_of(texts)
        blocks = max(LEAST_BLOCKS, blocks_for_one(number, sides=1) + SPARE_BLOCKS)
        for together in (False, True):
            row: dict[str, object] = {
                "bounds": number, "blocks": blocks,
                "responses": "move together" if together else "independent",
            }  # fmt: skip
            for what, beyond in BEYOND.items():
                failed = [fails(gate, blocks, beyond, together, random) for _ in range(SETS)]
                row[f"fails {what}"] = f"{np.mean(failed):.1%}"
            rows.append(row)
    print(f"{SETS} duels a cell, noise of a block {NOISE:.0%}, seed {SEED}\n")
    print(pd.DataFrame(rows).to_string(index=False))


if __name__ == "__main__":
    main()
