"""What adding blocks until all is decided errs, costs and saves: writes ``docs/stopping.md``.

Two treatments in random blocks, through ``effect_of`` and ``judge`` as in a run. The same seed
gives the same page, byte for byte.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perflab.analysis.methods.comparison import effect_of
from perflab.analysis.methods.repeated_looks import error_of_all, level_of_one
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
RULE = UntilDecided(least_blocks=LEAST, most_blocks=MOST)
RULES = ((LEAST, 12), (LEAST, 16), (LEAST, MOST), (LEAST, 24), (12, 24), (LEAST, 40))
GROWING, STEPS = "noise that grows tenfold", "steps far above the noise"
KINDS = (*CONDITIONS, GROWING, STEPS)
NOISE = 0.05
# Runs are simulated up to here; what is compared at equal power decides so often.
LONGEST, POWER = 40, 0.9
PUBLISHED = 1.6
TRUTHS, NOISES = (1.0, 1.2, 1.4, 1.6), (0.05, 0.08, 0.12, 0.20)
PAGE = project_root() / "docs" / "stopping.md"
FRAME = Path(__file__).with_name("stopping_table.md")


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


def ever_shown(logs: np.ndarray, level: float) -> float:
    """Return in how many sets some look from LEAST blocks on has a p of this level at most."""
    ever = np.zeros(len(logs), dtype=bool)
    for blocks in range(LEAST, MOST + 1):
        own = logs[:, :blocks]
        ranks = np.argsort(np.argsort(np.abs(own), axis=1), axis=1) + 1
        above = (ranks * (own > 0)).sum(axis=1)
        smaller = np.minimum(above, blocks * (blocks + 1) // 2 - above)
        ever |= 2 * null_cdf(blocks)[smaller] <= level
    return float(ever.mean())


def errors(random: np.random.Generator, kind: str, sets: int) -> tuple[float, float]:
    """Return how often equal treatments ever differ: by the usual test, and by the rule."""
    logs = equal(random, kind, sets)
    return ever_shown(logs, 0.05), ever_shown(logs, level_of_one(0.05, LEAST, MOST))


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


def by_rule(logs: np.ndarray, most: int) -> Cost:
    """Return what runs come to that end once the claim is decided."""
    rule = UntilDecided(least_blocks=LEAST, most_blocks=most)
    ended = [next((n for n in range(LEAST, most + 1) if decided(x[:n], rule)), None) for x in logs]
    share = sum(n is not None for n in ended) / len(logs)
    return Cost(share, float(np.mean([n or most for n in ended])))


def by_number(logs: np.ndarray, blocks: int) -> float:
    """Return how often so many blocks, fixed before, decide the claim."""
    return sum(decided(x[:blocks], None) for x in logs) / len(logs)


def equal_power(logs: np.ndarray) -> tuple[int, int, Cost] | None:
    """Return the fewest blocks with the wanted power, and the rule that has it too.

    The fixed number, the most blocks of the rule, and what it comes to; None where it takes more
    than were simulated, or so few that there is nothing to save.
    """
    fixed = next((n for n in range(6, LONGEST) if by_number(logs, n) >= POWER), LONGEST)
    for most in range(max(fixed, LEAST), LONGEST + 1) if LEAST < fixed < LONGEST else ():
        found = by_rule(logs, most)
        if found.decided >= POWER:
            return fixed, most, found
    return None


def decided(logs: np.ndarray, rule: UntilDecided | None) -> bool:
    """Say whether these blocks decide the claim."""
    return judge(effect_of(pd.Series(logs), rule=rule), claim()).outcome not in OPEN


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---:"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def level_table() -> str:
    """Return the level of each look under several rules."""
    rows = []
    for least, most in RULES:
        wide, narrow = (level_of_one(error, least, most) for error in (0.05, 0.10))
        all_looks = error_of_all(wide, least, most)
        levels = [f"{each:.2%}" for each in (wide, all_looks, narrow)]
        rows.append([str(least), str(most), *levels])
    heads = ["least", "most", "each look of the 95%", "all looks, exact", "each look of the 90%"]
    return _table(heads, rows)


def error_table(random: np.random.Generator, sets: int) -> str:
    """Return false alarms by kind of noise."""
    rows = [[kind, *(f"{each:.1%}" for each in errors(random, kind, sets))] for kind in KINDS]
    return _table(["noise", "usual test", "until_decided"], rows)


def places() -> Iterator[tuple[float, float]]:
    """Yield every truth with every noise."""
    for truth in TRUTHS:
        for noise in NOISES:
            yield truth, noise


def power_table(random: np.random.Generator, sets: int) -> str:
    """Return what deciding takes by a fixed number of blocks and by the rule, at equal power."""
    rows = []
    for truth, noise in places():
        found = equal_power(simulated(random, truth, noise, sets))
        if found is not None:
            fixed, most, own = found
            saved = f"{1 - own.blocks / fixed:.0%}"
            cells = [str(fixed), str(most), f"{own.blocks:.1f}", saved]
            rows.append([f"{truth:g}", f"{noise:.0%}", *cells])
    return _table(["truth", "noise of a trial", "fixed n", "most", "blocks", "saved"], rows)


def unknown_table(random: np.random.Generator, sets: int) -> str:
    """Return what the usual rule takes where nobody knew, beside its most blocks every time."""
    rows = []
    for truth, noise in places():
        logs = simulated(random, truth, noise, sets)
        own, every = by_rule(logs, MOST), by_number(logs, MOST)
        saved = f"{1 - own.blocks / MOST:.0%}"
        cells = [f"{own.decided:.0%}", f"{every:.0%}", f"{own.blocks:.1f}", saved]
        rows.append([f"{truth:g}", f"{noise:.0%}", *cells])
    heads = ["truth", "noise of a trial", "decided", f"decided by {MOST} fixed", "blocks", "saved"]
    return _table(heads, rows)


def page(error_sets: int, power_sets: int, seed: int = SEED) -> str:
    """Return the whole page."""
    return FRAME.read_text().format(
        least=LEAST,
        most=MOST,
        levels=level_table(),
        errors=error_table(np.random.default_rng(seed), error_sets),
        error_sets=f"{error_sets:,}",
        claim=f"{PUBLISHED:g}",
        power=f"{POWER:.0%}",
        powers=power_table(np.random.default_rng(seed), power_sets),
        power_sets=f"{power_sets:,}",
        unknown=unknown_table(np.random.default_rng(seed), power_sets),
    )


def main() -> None:
    """Simulate, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--error-sets", type=int, default=10_000, help="runs for each error")
    parser.add_argument("--power-sets", type=int, default=400, help="runs for each cost")
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args()
    PAGE.write_text(page(given.error_sets, given.power_sets, given.seed))
    print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
