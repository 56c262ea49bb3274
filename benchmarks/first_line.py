"""How often the first line of a duel names a difference: of equal copies, and of slower ones.

Block values of six responses are drawn, independent or moving together, and go through
:func:`perflab.statistics.comparison.effect_of` and
:func:`perflab.analysis.gates.first_line.corrected_over_first_line`. A line errs if it names any
difference of equal copies. For comparison each response has 5% for itself, as before.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from perflab.analysis.gates.first_line import FAMILY_OF, MEAN, corrected_over_first_line
from perflab.statistics.comparison import USUAL_P, effect_of
from perflab.systems import experiment

SETS, SEED, NOISE = 400, 20_261_128, 0.02
# Before, a duel had eight blocks.
BLOCKS = {"each at 5%": 8, "two families": 10}
CUSTOM = experiment("custom_service")
CONTRASTS = [item for item in CUSTOM.contrasts(CUSTOM.check({})) if item.response in FAMILY_OF]
SLOWER = {"equal": 0.0, "mean 2% slower": 0.02, "mean 4% slower": 0.04}


def named(blocks: int, slower: float, together: bool, random: np.random.Generator) -> pd.Series:
    """Return whether one duel's line names anything, and the mean, by each rule."""
    common = random.standard_normal(blocks) * together
    p_values = []
    for contrast in CONTRASTS:
        own = random.standard_normal(blocks)
        x = NOISE * (common + own) / math.sqrt(1 + together)
        p_values.append(effect_of(pd.Series(x + slower * (contrast.response == MEAN))).p_value)
    is_mean = np.array([contrast.response == MEAN for contrast in CONTRASTS])
    alone = np.array(p_values) <= USUAL_P
    among = np.array([each.holds for each in corrected_over_first_line(CONTRASTS, p_values)])
    return pd.Series(
        {
            ("each at 5%", "any"): alone.any(), ("each at 5%", "mean"): alone[is_mean].any(),
            ("two families", "any"): among.any(), ("two families", "mean"): among[is_mean].any(),
        }
    )  # fmt: skip


def main() -> None:
    """Print the table."""
    random, rows = np.random.default_rng(SEED), []
    for together in (False, True):
        for what, slower in SLOWER.items():
            row = {"duel": what, "responses": "move together" if together else "independent"}
            for rule, blocks in BLOCKS.items():
                shares = pd.DataFrame(
                    [named(blocks, slower, together, random) for _ in range(SETS)]
                ).mean()
                row |= {
                    f"{rule}, {blocks} blocks: names {of}": f"{shares[rule, of]:.1%}"
                    for of in ("any", "mean")
                }
            rows.append(row)
    print(f"{SETS} duels a row, noise of a block {NOISE:.0%}, seed {SEED}\n")
    print(pd.DataFrame(rows).to_string(index=False))


if __name__ == "__main__":
    main()
