"""What adding blocks until all is decided errs, costs and saves: writes ``docs/stopping.md``.

The same seed gives the same page, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks import bench
from perflab.paths import project_root
from perflab.recordings import UntilDecided
from perflab.statistics import signed_rank
from perflab.statistics.interim_analysis import APART, FIRST_SHARE, planned
from perflab.statistics.signed_rank import null_cdf
from tests.support.simulations.stopping import (
    KINDS,
    LEAST,
    LONGEST,
    MOST,
    PUBLISHED,
    RULE,
    Cost,
    Place,
    by_rule,
    error_of_all,
    errors,
    every_look,
    looks_of,
    lowest_sums,
    simulated,
)

SEED = 20_261_123
RULES = ((LEAST, 12), (LEAST, 16), (LEAST, MOST), (LEAST, 26), (12, 24), (6, MOST))
# What is compared at equal power decides so often.
POWER = 0.9
TRUTHS, NOISES = (1.0, 1.2, 1.4, 1.6), (0.05, 0.08, 0.12, 0.20)
PAGE = project_root() / "docs" / "stopping.md"
FRAME = Path(__file__).with_name("stopping_table.md")

Plan = Callable[[int], UntilDecided]

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
