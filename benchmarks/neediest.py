"""What it brings that a sweep gives the next blocks to the cell that needs them most: a table.

Sweeps of many cells are simulated, each cell with a truth and a noise of its own, and carried out
within the same number of blocks: as many blocks for every cell (fixed before); with
``blocks=until_decided`` in the order of the file, until the blocks are spent; and by turns
(``perflab sweep --minutes``), chosen by the very function that chooses in a sweep. Counted is which
share of the cells is decided, with the 95% interval over sweeps. Nothing is measured, so the seed
alone sets the table, which ``benchmarks/stopping_table.py`` writes into ``docs/stopping.md``.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from perflab.analysis.methods.comparison import effect_of
from perflab.analysis.methods.repeated_looks import planned
from perflab.analysis.treatments.open_claims import OPEN
from perflab.analysis.treatments.outlook import NOTHING_OPEN, Outlook, cheapest
from perflab.analysis.treatments.verdict import judge
from perflab.recordings import Contrast, UntilDecided
from perflab.sweeps.cells import Cell
from perflab.sweeps.turns import Standing, chosen

RULE, LONGER = planned(8, 20), planned(8, 26)
LONGEST = 40
SEED = 20_261_123
SWEEPS = 100
BUDGETS = (9, 10, 11, 12, 14, 16, 20)
PUBLISHED = 1.6
TRUTHS, NOISES = (1.0, 1.2, 1.4, 1.6, 2.0), (0.05, 0.10, 0.20)
CONTRAST = Contrast(
    name="claim", claim="claim", response="throughput_rps", numerator={}, denominator={},
    published_ratio=PUBLISHED, source="simulated",
)  # fmt: skip


class Simulated:
    """A cell of a sweep: the log ratios that its blocks will have, and how many it has so far."""

    def __init__(self, name: str, logs: np.ndarray, rule: UntilDecided) -> None:
        self.logs, self.rule, self.done = logs, rule, 0
        self.outlook = Outlook(rule.least_blocks, 1.0)
        self._seen: dict[int, Outlook] = {}
        asked = {"blocks": "until_decided", "least_blocks": rule.least_blocks}
        self.cell = Cell(name, name, {}, asked, (), 1, rule.most_blocks)

    def look(self) -> None:
        """Measure until the next look, and take it."""
        self.done = self.next_look
        if self.done not in self._seen:
            self._seen[self.done] = ahead(self.logs[: self.done], self.rule)
        self.outlook = self._seen[self.done]

    def anew(self) -> Simulated:
        """Return it as if nothing had been measured; what is known of its blocks is kept."""
        self.done, self.outlook = 0, Outlook(self.rule.least_blocks, 1.0)
        return self

    @property
    def next_look(self) -> int:
        """Return after how many blocks it is looked at next."""
        return self.rule.next_look(self.done)

    @property
    def decided(self) -> bool:
        """Return whether its claim is decided."""
        return self.outlook == NOTHING_OPEN

    @property
    def ended(self) -> bool:
        """Return whether it gets no more blocks."""
        return self.decided or self.done >= self.rule.most_blocks


def ahead(logs: np.ndarray, rule: UntilDecided) -> Outlook:
    """Return the outlook of a cell that has these blocks."""
    effect = effect_of(pd.Series(logs), rule=rule)
    if judge(effect, CONTRAST).outcome not in OPEN:
        return NOTHING_OPEN
    return cheapest([(effect, CONTRAST)], rule, len(logs))


def decided_at_once(logs: np.ndarray) -> bool:
    """Say whether these blocks, judged once as usual, decide the claim."""
    return judge(effect_of(pd.Series(logs)), CONTRAST).outcome not in OPEN


Way = Callable[[Sequence[Simulated], int], float]


def fixed(cells: Sequence[Simulated], budget: int) -> float:
    """Return the share decided where every cell has as many blocks, judged once, as usual."""
    each = budget // len(cells)
    return float(np.mean([decided_at_once(cell.logs[:each]) for cell in cells]))


def in_order(cells: Sequence[Simulated], budget: int) -> float:
    """Return the share decided where each cell is measured until it is decided."""
    for cell in cells:
        while not cell.ended and budget >= cell.next_look - cell.done:
            budget -= cell.next_look - cell.done
            cell.look()
    return float(np.mean([cell.decided for cell in cells]))


def by_turns(cells: Sequence[Simulated], budget: int) -> float:
    """Return the share decided where the next blocks go to who needs them most."""
    named = {cell.cell.id: cell for cell in cells}
    while True:
        standings = [
            # A block takes a second: the blocks that are left are the time that is.
            Standing(cell.cell, cell.done, cell.next_look, cell.outlook, 1.0)
            for cell in cells
            if not cell.ended
        ]
        turn = chosen(standings, float(budget))
        if turn is None:
            return float(np.mean([cell.decided for cell in cells]))
        cell = named[turn.cell.id]
        budget -= cell.next_look - cell.done
        cell.look()


def sweep_logs(random: np.random.Generator) -> list[np.ndarray]:
    """Return the log ratios of a sweep's cells, in random order: each truth with each noise."""
    kinds = [(truth, noise) for truth in TRUTHS for noise in NOISES]
    random.shuffle(kinds)
    return [random.normal(math.log(truth), noise * math.sqrt(2), LONGEST) for truth, noise in kinds]


def drawn(sweeps: int, seed: int = SEED) -> list[list[np.ndarray]]:
    """Return the log ratios of so many sweeps."""
    random = np.random.default_rng(seed)
    return [sweep_logs(random) for _ in range(sweeps)]


def simulated(logs: Sequence[Sequence[np.ndarray]], rule: UntilDecided) -> list[list[Simulated]]:
    """Return the cells of sweeps by a rule, before anything is measured."""
    return [
        [Simulated(str(number), own, rule) for number, own in enumerate(cells)] for cells in logs
    ]


def shares(way: Way, sweeps: Sequence[Sequence[Simulated]], budget: int) -> np.ndarray:
    """Return the share that each sweep decides in a way, within so many blocks for each cell."""
    found = [way([cell.anew() for cell in cells], budget * len(cells)) for cells in sweeps]
    return np.array(found)


def table(sweeps: int = SWEEPS) -> str:
    """Return what is decided in each way within each budget, in Markdown."""
    logs = drawn(sweeps)
    usual, longer = simulated(logs, RULE), simulated(logs, LONGER)
    ways = {
        "fixed n": (fixed, usual),
        "until_decided, in order": (in_order, usual),
        "until_decided, by turns": (by_turns, usual),
        f"by turns, `most_blocks={LONGER.most_blocks}`": (by_turns, longer),
    }
    lines = [f"| blocks a cell | {' | '.join(ways)} |", "|---:|" + "---:|" * len(ways)]
    for budget in BUDGETS:
        found = [_with_interval(shares(way, cells, budget)) for way, cells in ways.values()]
        lines.append(f"| {budget} | {' | '.join(found)} |")
    return "\n".join(lines)


def _with_interval(found: np.ndarray) -> str:
    half = 1.96 * found.std(ddof=1) / math.sqrt(len(found))
    return f"{found.mean():.0%} [{found.mean() - half:.0%}, {found.mean() + half:.0%}]"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=SWEEPS, help=f"simulated sweeps ({SWEEPS})")
    asked = parser.parse_args()
    cells = len(TRUTHS) * len(NOISES)
    print(f"share of {cells} cells decided, mean of {asked.sweeps} sweeps [95%]\n")
    print(table(asked.sweeps))


if __name__ == "__main__":
    main()
