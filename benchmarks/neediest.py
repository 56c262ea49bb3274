"""What it brings that a sweep gives the next block to the cell that needs it most: a table.

Sweeps of many cells are simulated, each cell with a truth and a noise of its own, and carried out
within the same number of blocks in three ways: as many blocks for every cell (fixed before);
``blocks=until_decided`` in the order of the file, until the blocks are spent; and by turns
(``perflab sweep --minutes``), chosen by the very function that chooses in a sweep. Counted is which
share of the cells is decided, with the 95% interval over sweeps. Nothing is measured, so the seed
alone sets the table.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from perflab.analysis.methods.comparison import effect_of
from perflab.analysis.treatments.open_claims import OPEN
from perflab.analysis.treatments.outlook import blocks_wanted
from perflab.analysis.treatments.verdict import judge
from perflab.recordings import Contrast, UntilDecided
from perflab.sweeps.cells import Cell
from perflab.sweeps.turns import Standing, chosen

RULE = UntilDecided(least_blocks=8, most_blocks=20)
LONGEST = 40
SEED = 20_261_123
PUBLISHED = 1.6
TRUTHS, NOISES = (1.0, 1.2, 1.4, 1.6, 2.0), (0.05, 0.10, 0.20)
CONTRAST = Contrast(
    name="claim", claim="claim", response="throughput_rps", numerator={}, denominator={},
    published_ratio=PUBLISHED, source="simulated",
)  # fmt: skip


class Simulated:
    """A cell of a sweep: the log ratios that its blocks will have, and how many it has so far."""

    def __init__(self, name: str, logs: np.ndarray) -> None:
        self.logs, self.done, self.left = logs, 0, math.inf
        self._seen: dict[int, float] = {}
        asked = {"blocks": "until_decided", "least_blocks": 8, "most_blocks": RULE.most_blocks}
        self.cell = Cell(name, name, {}, asked, (), 1, RULE.most_blocks)

    def has(self, blocks: int) -> None:
        """Measure until there are so many blocks, and look."""
        if blocks not in self._seen:
            self._seen[blocks] = left(self.logs[:blocks], RULE)
        self.done, self.left = blocks, self._seen[blocks]

    def anew(self) -> Simulated:
        """Return it as if nothing had been measured; what is known of its blocks is kept."""
        self.done, self.left = 0, math.inf
        return self

    @property
    def ended(self) -> bool:
        """Return whether it gets no more blocks."""
        return self.left == 0 or self.done >= RULE.most_blocks


def left(logs: np.ndarray, rule: UntilDecided | None) -> float:
    """Return the blocks that are left until the claim is decided; 0: it is."""
    effect = effect_of(pd.Series(logs), rule=rule)
    if judge(effect, CONTRAST).outcome not in OPEN:
        return 0.0
    wanted = blocks_wanted(effect, CONTRAST) - len(logs)
    return max(1.0, wanted) if wanted <= RULE.most_blocks - len(logs) else math.inf


def fixed(cells: Sequence[Simulated], budget: int) -> float:
    """Return the share decided where every cell has as many blocks, judged once, as usual."""
    each = budget // len(cells)
    return float(np.mean([left(cell.logs[:each], None) == 0 for cell in cells]))


def in_order(cells: Sequence[Simulated], budget: int) -> float:
    """Return the share decided where each cell is measured until it is decided."""
    for cell in cells:
        for blocks in range(RULE.least_blocks, RULE.most_blocks + 1):
            if budget < blocks - cell.done:
                break
            budget -= blocks - cell.done
            cell.has(blocks)
            if cell.ended:
                break
    return float(np.mean([cell.left == 0 for cell in cells]))


def by_turns(cells: Sequence[Simulated], budget: int) -> float:
    """Return the share decided where the next block goes to who needs it most."""
    named = {cell.cell.id: cell for cell in cells}
    while budget > 0:
        standings = [
            Standing(cell.cell, cell.done, cell.left, 1.0 if cell.done else math.nan)
            for cell in cells
            if not cell.ended
        ]
        turn = chosen(standings, float(budget))
        if turn is None or turn.pause_after is None:
            break
        cell = named[turn.cell.id]
        if turn.pause_after - cell.done > budget:
            break
        budget -= turn.pause_after - cell.done
        cell.has(turn.pause_after)
    return float(np.mean([cell.left == 0 for cell in cells]))


WAYS: dict[str, Callable[[Sequence[Simulated], int], float]] = {
    "fixed n": fixed, "until_decided, in order": in_order, "until_decided, by turns": by_turns,
}  # fmt: skip


def sweep(random: np.random.Generator) -> list[Simulated]:
    """Return the log ratios of a sweep's cells, in random order: each truth with each noise."""
    kinds = [(truth, noise) for truth in TRUTHS for noise in NOISES]
    random.shuffle(kinds)
    return [
        Simulated(str(number), random.normal(math.log(truth), noise * math.sqrt(2), LONGEST))
        for number, (truth, noise) in enumerate(kinds)
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=100, help="simulated sweeps (100)")
    asked = parser.parse_args()
    random = np.random.default_rng(SEED)
    sweeps = [sweep(random) for _ in range(asked.sweeps)]
    print(f"share of {len(sweeps[0])} cells decided, mean of {len(sweeps)} sweeps [95%]\n")
    print("| blocks a cell | " + " | ".join(WAYS) + " |\n|---:|" + "---:|" * len(WAYS))
    for each in (9, 10, 11, 12, 14, 16, 20):
        found = []
        for way in WAYS.values():
            shares = [way([cell.anew() for cell in cells], each * len(cells)) for cells in sweeps]
            half = 1.96 * np.std(shares, ddof=1) / math.sqrt(len(shares))
            found.append(f"{np.mean(shares):.0%} [{np.mean(shares) - half:.0%}, "
                         f"{np.mean(shares) + half:.0%}]")  # fmt: skip
        print(f"| {each} | " + " | ".join(found) + " |", flush=True)


if __name__ == "__main__":
    main()
