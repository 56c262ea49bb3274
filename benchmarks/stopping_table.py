"""What adding blocks until all is decided errs, costs and saves.

Writes ``benchmarks/results/stopping.md``.

The same seed gives the same page, byte for byte.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks import bench
from perflab.analysis.findings import is_half_decided
from perflab.analysis.results import OPEN, Verdict
from perflab.analysis.verdict import judge
from perflab.paths import project_root
from perflab.recordings import Contrast, UntilDecided
from perflab.statistics import signed_rank
from perflab.statistics.comparison import Effect
from perflab.statistics.interim_analysis import APART, FIRST_SHARE, planned
from perflab.statistics.signed_rank import null_cdf
from tests.support.simulations.stopping import (
    KINDS,
    LEAST,
    MOST,
    RULE,
    error_of_all,
    errors,
    looks_of,
    lowest_sums,
)
from tests.support.simulations.verdicts import claim as claim_of

SEED = 20_261_123
RULES = ((LEAST, 12), (LEAST, 16), (LEAST, MOST), (LEAST, 26), (12, 24), (6, MOST))
TRUTHS, NOISES = (1.0, 1.2, 1.4, 1.6), (0.05, 0.08, 0.12, 0.20)
PAGE = project_root() / "benchmarks" / "results" / "stopping.md"
FRAME = Path(__file__).with_name("stopping_table.md")


# Runs are simulated up to here.
LONGEST = 40
PUBLISHED = 1.6


def claim() -> Contrast:
    """Return the claim whose decision is simulated."""
    return claim_of(published_ratio=PUBLISHED, published_direction="greater")


@dataclass(frozen=True)
class Cost:
    """How often a rule decided a claim, and after how many blocks on average."""

    decided: float
    blocks: float


def simulated(random: np.random.Generator, truth: float, noise: float, sets: int) -> np.ndarray:
    """Return log ratios of runs, shape (sets, LONGEST)."""
    trials = noise * random.standard_normal((sets, LONGEST, 2))
    found: np.ndarray = math.log(truth) + trials[:, :, 0] - trials[:, :, 1]
    return found


@dataclass
class Place:
    """Many runs with one truth and one noise, and what is known of their decisions."""

    logs: np.ndarray
    _known: dict[tuple[int, int, int], np.ndarray] = field(default_factory=dict)

    def decided(self, blocks: int, wide: int, narrow: int) -> np.ndarray:
        """Say of each run whether these blocks decide the claim.

        ``wide`` and ``narrow`` are how many of the lowest sums the tests of the 95% and the 90%
        interval reject.
        """
        key = (blocks, wide, narrow)
        if key not in self._known:
            averages = all_averages(self.logs[:, :blocks])
            claimed = claim()
            ends = zip(*(ends_of(averages, lowest) for lowest in (wide, narrow)), strict=True)
            self._known[key] = np.array(
                [_is_decided(judge(_effect(blocks, *each), claimed), claimed) for each in ends]
            )
        return self._known[key]


def _is_decided(verdict: Verdict, claimed: Contrast) -> bool:
    return verdict.result not in OPEN and not is_half_decided(verdict, claimed)


def all_averages(logs: np.ndarray) -> np.ndarray:
    """Return the sorted Walsh averages of each run: shape (runs, n (n + 1) / 2)."""
    i, j = np.triu_indices(logs.shape[1])
    return np.sort((logs[:, i] + logs[:, j]) / 2, axis=1)


def ends_of(averages: np.ndarray, lowest: int) -> list[tuple[float, float]]:
    """Return both ends of each run's interval; NaN where no sum is rejected."""
    if not lowest:
        return [(math.nan, math.nan)] * len(averages)
    low, high = averages[:, lowest - 1], averages[:, -lowest]
    return list(zip(low.tolist(), high.tolist(), strict=True))


def _effect(blocks: int, wide: tuple[float, float], narrow: tuple[float, float]) -> Effect:
    low, high, inner_low, inner_high = (math.exp(end) for end in (*wide, *narrow))
    return Effect(
        math.nan, low, high, 0.95, blocks, math.nan,
        narrow_low=inner_low, narrow_high=inner_high,
    )  # fmt: skip


def by_rule(place: Place, rule: UntilDecided) -> Cost:
    """Return what runs come to that end once the claim is decided."""
    looks = looks_of(rule)
    ended = np.full(len(place.logs), rule.most_blocks)
    going_on = np.ones(len(place.logs), dtype=bool)
    wide, narrow = (lowest_sums(rule, error) for error in (0.05, 0.10))
    for blocks, *lowest in zip(looks, wide, narrow, strict=True):
        now = going_on & place.decided(blocks, *lowest)
        ended[now] = blocks
        going_on &= ~now
    return Cost(1 - float(going_on.mean()), float(ended.mean()))


def by_number(place: Place, blocks: int) -> float:
    """Return how often so many blocks, fixed before, decide the claim."""
    lowest = (signed_rank.critical(blocks, tail)[0] + 1 for tail in (0.025, 0.05))
    return float(place.decided(blocks, *lowest).mean())


def _table(heads: Sequence[str], rows: list[list[str]]) -> str:
    return bench.markdown(pd.DataFrame(rows, columns=pd.Index(heads)), "---:").rstrip()


def level_table() -> str:
    """Return the looks of several rules, and the level of the test at each."""
    rows = []
    for least, most in RULES:
        rule = planned(least, most)
        looks = looks_of(rule)
        wide, narrow = (lowest_sums(rule, error) for error in (0.05, 0.10))
        of_all = error_of_all(tuple(looks), tuple(wide))
        rows.append([
            str(least), str(most), ", ".join(map(str, looks)),
            _levels(looks, wide), f"{of_all:.2%}", _levels(looks, narrow),
        ])  # fmt: skip
    heads = ["least", "most", "looks after", "each look of the 95%", "all looks, exact",
             "each look of the 90%"]  # fmt: skip
    return _table(heads, rows)


def _levels(looks: Sequence[int], lowest: Sequence[int]) -> str:
    levels = [
        2 * float(null_cdf(n)[own - 1]) if own else 0.0
        for n, own in zip(looks, lowest, strict=True)
    ]
    return ", ".join(f"{each:.2%}" if each else "none" for each in levels)


def error_table(random: np.random.Generator, sets: int) -> str:
    """Return false alarms by kind of noise."""
    rows = [[kind, *(f"{each:.1%}" for each in errors(random, kind, sets))] for kind in KINDS]
    heads = ["noise", "usual test, after every block", "usual test, at the looks", "until_decided"]
    return _table(heads, rows)


def places(random: np.random.Generator, sets: int) -> Iterator[tuple[float, float, Place]]:
    """Yield every truth with every noise, and runs of it."""
    for truth in TRUTHS:
        for noise in NOISES:
            yield truth, noise, Place(simulated(random, truth, noise, sets))


def unknown_table(of: Sequence[tuple[float, float, Place]]) -> str:
    """Return what the usual rule takes where nobody knew, beside its most blocks every time."""
    rows = []
    for truth, noise, place in of:
        own, every = by_rule(place, RULE), by_number(place, MOST)
        saved = f"{1 - own.blocks / MOST:.0%}"
        cells = [f"{own.decided:.0%}", f"{every:.0%}", f"{own.blocks:.1f}", saved]
        rows.append([f"{truth:g}", f"{noise:.0%}", *cells])
    heads = ["truth", "noise of a trial", "decided", f"decided by {MOST} fixed", "blocks", "saved"]
    return _table(heads, rows)


def page(error_sets: int, power_sets: int, seed: int = SEED) -> str:
    """Return the whole page."""
    of = list(places(np.random.default_rng(seed), power_sets))
    return FRAME.read_text().format(
        least=LEAST,
        most=MOST,
        apart=APART,
        first=f"{FIRST_SHARE:.0%}",
        levels=level_table(),
        errors=error_table(np.random.default_rng(seed), error_sets),
        error_sets=f"{error_sets:,}",
        claim=f"{PUBLISHED:g}",
        power_sets=f"{power_sets:,}",
        unknown=unknown_table(of),
    )


def main() -> None:
    """Simulate, and write the page."""
    given = bench.options(
        __doc__,
        error_sets=(10_000, "runs for each error"),
        power_sets=(1_000, "runs for each cost"),
        seed=SEED,
    )
    PAGE.write_text(page(given.error_sets, given.power_sets, given.seed))
    print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
