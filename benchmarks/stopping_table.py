"""What adding blocks until all is decided errs, costs and saves: writes ``docs/stopping.md``.

Two treatments in random blocks, judged as in a run; the intervals of many runs are worked out at
once (``tests/analysis/test_stopping_table.py``: they are those of ``effect_of``). The same seed
gives the same page, byte for byte.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from perflab.analysis.methods import every_block, signed_rank
from perflab.analysis.methods.comparison import Effect
from perflab.analysis.methods.repeated_looks import (
    APART,
    FIRST_SHARE,
    ending_sums,
    error_of_all,
    planned,
)
from perflab.analysis.methods.signed_rank import null_cdf
from perflab.analysis.treatments.open_claims import OPEN
from perflab.analysis.treatments.resolving import CONDITIONS, drawn_trials
from perflab.analysis.treatments.verdict import judge
from perflab.experiments import RunParameters
from perflab.paths import project_root
from perflab.recordings import Contrast, UntilDecided

SEED = 20_261_123
LEAST, MOST = (
    int(RunParameters.model_fields[name].default) for name in ("least_blocks", "most_blocks")
)
RULE = planned(LEAST, MOST)
RULES = ((LEAST, 12), (LEAST, 16), (LEAST, MOST), (LEAST, 26), (12, 24), (6, MOST))
GROWING, STEPS = "noise that grows tenfold", "steps far above the noise"
KINDS = (*CONDITIONS, GROWING, STEPS)
NOISE = 0.05
# Runs are simulated up to here; what is compared at equal power decides so often.
LONGEST, POWER = 40, 0.9
PUBLISHED = 1.6
TRUTHS, NOISES = (1.0, 1.2, 1.4, 1.6), (0.05, 0.08, 0.12, 0.20)
PAGE = project_root() / "docs" / "stopping.md"
FRAME = Path(__file__).with_name("stopping_table.md")

Plan = Callable[[int], UntilDecided]


def every_look(most: int) -> UntilDecided:
    """Return the rule of runs that were looked at after every block, at one level."""
    return UntilDecided(least_blocks=LEAST, most_blocks=most)


USUAL: Plan = partial(planned, LEAST)
PLANS: dict[str, Plan] = {
    "every block, one level": every_look,
    "every 3 blocks": partial(planned, LEAST, apart=3),
    f"**every {APART} blocks**": USUAL,
    f"every {APART}, at first a sixth of the error": partial(planned, LEAST, first=1 / 6),
    f"every {APART}, at first half of the error": partial(planned, LEAST, first=1 / 2),
    "only the first and the last": partial(planned, LEAST, apart=LONGEST),
    f"every {APART}, from 6 on": partial(planned, 6),
}


def looks_of(rule: UntilDecided) -> list[int]:
    """Return after how many blocks a rule may look."""
    every = list(range(rule.least_blocks, rule.most_blocks + 1))
    return [look.blocks for look in rule.plan] or every


def equal(random: np.random.Generator, kind: str, sets: int) -> np.ndarray:
    """Return log ratios between equal treatments, shape (sets, MOST)."""
    shape = (sets, MOST)
    if kind == GROWING:
        return NOISE * np.geomspace(1, 10, MOST) * random.standard_normal(shape)
    if kind == STEPS:
        # A machine that gets slower with every trial: all that a block has is its order's sign.
        sign = random.choice([-1.0, 1.0], shape)
        return sign * (20 * NOISE) + NOISE * random.standard_normal(shape)
    trials = np.stack([drawn_trials(random, MOST, NOISE, kind) for _ in range(sets)])
    found: np.ndarray = trials[:, :, 0] - trials[:, :, 1]
    return found


def ever_shown(logs: np.ndarray, sums: dict[int, int]) -> float:
    """Return in how many sets some look, after so many blocks, has a sum among the so many lowest.

    Or among the so many highest.
    """
    ever = np.zeros(len(logs), dtype=bool)
    for blocks, lowest in sums.items():
        own = logs[:, :blocks]
        ranks = np.argsort(np.argsort(np.abs(own), axis=1), axis=1) + 1
        above = (ranks * (own > 0)).sum(axis=1)
        ever |= np.minimum(above, blocks * (blocks + 1) // 2 - above) < lowest
    return float(ever.mean())


def errors(random: np.random.Generator, kind: str, sets: int) -> tuple[float, float, float]:
    """Return how often equal treatments ever differ.

    By the usual test after every block, by the usual test at the looks of the rule, by the rule.
    """
    logs = equal(random, kind, sets)
    usual = {n: signed_rank.critical(n, 0.025)[0] + 1 for n in range(LEAST, MOST + 1)}
    own = dict(zip(looks_of(RULE), lowest_sums(RULE, 0.05), strict=True))
    at_looks = {n: usual[n] for n in own}
    return ever_shown(logs, usual), ever_shown(logs, at_looks), ever_shown(logs, own)


def lowest_sums(rule: UntilDecided, error: float) -> list[int]:
    """Return for each look how many of the lowest sums show a difference."""
    looks = looks_of(rule)
    if not rule.plan:
        level = every_block.level_of_one(error, rule.least_blocks, rule.most_blocks)
        return [signed_rank.critical(n, level / 2)[0] + 1 for n in looks]
    shares = tuple(look.share for look in rule.plan)
    return list(ending_sums(error, tuple(looks), shares))


def claim() -> Contrast:
    """Return the claim whose decision is simulated."""
    sides: dict[str, Any] = {"numerator": {}, "denominator": {}}
    return Contrast(
        name="c", claim="c", response="throughput_rps", source="simulated",
        published_ratio=PUBLISHED, published_direction="greater", **sides,
    )  # fmt: skip


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
                [judge(_effect(blocks, *each), claimed).outcome not in OPEN for each in ends]
            )
        return self._known[key]


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
        math.nan, low, high, 0.95, blocks, math.nan, "",
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


def fewest_fixed(place: Place) -> int:
    """Return the smallest number, fixed before, with the wanted power; LONGEST: more."""
    if by_number(place, LONGEST - 1) < POWER:
        return LONGEST
    return next(n for n in range(6, LONGEST) if by_number(place, n) >= POWER)


def equal_power(place: Place, plan: Plan, fixed: int) -> tuple[int, Cost] | None:
    """Return the fewest most blocks with which a plan has the wanted power, and what it comes to.

    None where it takes more than were simulated, or the fixed number is so small that there is
    nothing to save.
    """
    for most in range(max(fixed, LEAST), LONGEST + 1) if LEAST < fixed < LONGEST else ():
        found = by_rule(place, plan(most))
        if found.decided >= POWER:
            return most, found
    return None


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---:"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


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


def power_table(of: Sequence[tuple[float, float, Place]]) -> str:
    """Return what deciding takes by a fixed number of blocks and by rules, at equal power."""
    rows = []
    for truth, noise, place in of:
        fixed = fewest_fixed(place)
        found = [equal_power(place, plan, fixed) for plan in (USUAL, every_look)]
        if any(found):
            cells = [cell for each in found for cell in _cost(each, fixed)]
            rows.append([f"{truth:g}", f"{noise:.0%}", str(fixed), *cells])
    heads = ["truth", "noise of a trial", "fixed n", "most", "blocks", "saved",
             "after every block: most", "blocks", "saved"]  # fmt: skip
    return _table(heads, rows)


def _cost(found: tuple[int, Cost] | None, fixed: int) -> list[str]:
    if found is None:
        return [f"above {LONGEST}", "", ""]
    most, own = found
    return [str(most), f"{own.blocks:.1f}", f"{1 - own.blocks / fixed:.0%}"]


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


def plan_table(of: Sequence[tuple[float, float, Place]]) -> str:
    """Return what other plans of looks come to."""
    fixed = [(place, fewest_fixed(place)) for _, _, place in of]
    rows = []
    for name, plan in PLANS.items():
        at_power = [(equal_power(place, plan, least), least) for place, least in fixed]
        known = [(found, least) for found, least in at_power if found]
        most = np.mean([found[0] for found, _ in known])
        saved = np.mean([1 - found[1].blocks / least for found, least in known])
        costs = [by_rule(place, plan(MOST)) for _, _, place in of]
        rows.append([
            name, f"{saved:.0%}", f"{most:.1f}",
            f"{np.mean([each.decided for each in costs]):.1%}",
            f"{np.mean([each.blocks for each in costs]):.1f}",
        ])  # fmt: skip
    heads = ["looks", "saved at equal power", "most for it", f"decided within {MOST}", "blocks"]
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
        power=f"{POWER:.0%}",
        powers=power_table(of),
        power_sets=f"{power_sets:,}",
        unknown=unknown_table(of),
        plans=plan_table(of),
    )


def main() -> None:
    """Simulate, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--error-sets", type=int, default=10_000, help="runs for each error")
    parser.add_argument("--power-sets", type=int, default=1_000, help="runs for each cost")
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args()
    PAGE.write_text(page(given.error_sets, given.power_sets, given.seed))
    print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
