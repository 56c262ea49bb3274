"""Which verdict is given under which truth, by simulation: writes ``docs/verdicts.md``.

Two treatments in random blocks, trials with log-normal noise, through ``effect_of``, ``corrected``
and ``judge`` as in a run. The same seed gives the same page, byte for byte.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perflab.analysis.methods.comparison import Effect, effect_of
from perflab.analysis.methods.family import corrected
from perflab.analysis.methods.paired_power import smallest_effect
from perflab.analysis.methods.signed_rank import null_cdf
from perflab.analysis.treatments.verdict import Outcome, Way, judge
from perflab.paths import project_root
from perflab.recordings import Contrast

SEED = 20_261_122
TRUTHS = (1.0, 1.1, 1.3, 1.6, 2.0)
NOISES = (0.05, 0.08, 0.20)
BLOCKS = (6, 8, 12)
PUBLISHED: dict[str, dict[str, Any]] = {
    "1.6": {"published_ratio": 1.6, "published_direction": "greater"},
    "1.1": {"published_ratio": 1.1, "published_direction": "greater"},
    "no effect": {"published_direction": "none"},
}
OF_A_DIRECTION = (Outcome.SIZE_UNDECIDED, Outcome.SIZE_CONTRADICTED)
OUTCOMES = (Outcome.REPRODUCED, *OF_A_DIRECTION, Outcome.UNDECIDED, Outcome.NOT_REPRODUCED)
FAMILIES = ((1, 0), (1, 1), (5, 0), (5, 1), (5, 5), (15, 0), (15, 1), (15, 5), (15, 15))
FAMILY_NOISE, FAMILY_TRUTH = 0.08, 1.3
LAST_BLOCKS = 24
FIRST_LOOK, LAST_LOOK = 6, 30
PAGE = project_root() / "docs" / "verdicts.md"
FRAME = Path(__file__).with_name("verdict_table.md")


def claim(**published: Any) -> Contrast:
    """Return a contrast of which that was published."""
    sides: dict[str, Any] = {"numerator": {}, "denominator": {}}
    return Contrast(
        name="c", claim="c", response="throughput_rps", source="simulated", **sides, **published
    )


def effects(
    random: np.random.Generator, sets: int, blocks: int, truth: float, noise: float
) -> Iterator[Effect]:
    """Return the effects of simulated runs whose trials have this noise."""
    trials = noise * random.standard_normal((sets, blocks, 2))
    for one in math.log(truth) + trials[:, :, 0] - trials[:, :, 1]:
        yield effect_of(pd.Series(one))


def verdicts(
    random: np.random.Generator, sets: int, blocks: int, truth: float, noise: float
) -> dict[str, Counter[Outcome]]:
    """Return how often each verdict was given, by what was published."""
    claims = {name: claim(**published) for name, published in PUBLISHED.items()}
    counts: dict[str, Counter[Outcome]] = {name: Counter() for name in claims}
    for effect in effects(random, sets, blocks, truth, noise):
        for name, contrast in claims.items():
            counts[name][judge(effect, contrast).outcome] += 1
    return counts


@dataclass(frozen=True)
class Level:
    """What a family of claims comes to: shares over simulated runs.

    ``false_share`` of the directions told (shown or opposite) are of no effect at all, on average
    over the runs; ``any_false`` of the runs tell at least one such; ``found`` of the true effects
    are shown.
    """

    false_share: float
    any_false: float
    found: float


def family_level(
    random: np.random.Generator, sets: int, blocks: int, claims: int, true: int
) -> Level:
    """Simulate runs of several claims, the first ``true`` of which hold."""
    contrast = claim(published_direction="greater")
    false_share = any_false = found = 0.0
    for _ in range(sets):
        told = [
            next(effects(random, 1, blocks, FAMILY_TRUTH if at < true else 1.0, FAMILY_NOISE))
            for at in range(claims)
        ]
        among = corrected([effect.p_value for effect in told])
        ways = [judge(one, contrast, own).direction for one, own in zip(told, among, strict=True)]
        wrong = sum(way is not Way.NOT_SHOWN for way in ways[true:])
        said = sum(way is not Way.NOT_SHOWN for way in ways)
        false_share += wrong / max(1, said)
        any_false += wrong > 0
        found += sum(way is Way.SHOWN for way in ways[:true])
    power = found / (sets * true) if true else math.nan
    return Level(false_share / sets, any_false / sets, power)


def false_alarms_of_peeking(random: np.random.Generator, sets: int) -> tuple[float, float]:
    """Return how often identical treatments differ at the last look alone, and at any look."""
    noise = random.standard_normal((sets, LAST_LOOK))
    ever = np.zeros(sets, dtype=bool)
    now = ever
    for blocks in range(FIRST_LOOK, LAST_LOOK + 1):
        own = noise[:, :blocks]
        ranks = np.argsort(np.argsort(np.abs(own), axis=1), axis=1) + 1
        above = (ranks * (own > 0)).sum(axis=1)
        smaller = np.minimum(above, blocks * (blocks + 1) // 2 - above)
        now = 2 * null_cdf(blocks)[smaller] <= 0.05
        ever |= now
    return float(now.mean()), float(ever.mean())


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---:"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def verdict_tables(random: np.random.Generator, sets: int) -> dict[str, str]:
    """Return a table of verdicts by truth, noise and blocks, for each published effect."""
    rows: dict[str, list[list[str]]] = {name: [] for name in PUBLISHED}
    for truth in TRUTHS:
        for noise in NOISES:
            for blocks in BLOCKS:
                for name, counts in verdicts(random, sets, blocks, truth, noise).items():
                    told = [counts[each] / sets for each in columns_of(name)]
                    shares = [f"{share:.0%}" for share in told]
                    rows[name].append([f"{truth:g}", f"{noise:.0%}", str(blocks), *shares])
    return {
        name: _table(["truth", "noise", "n", *map(str, columns_of(name))], own)
        for name, own in rows.items()
    }


def columns_of(published: str) -> list[Outcome]:
    """Return the verdicts that a published effect can have."""
    without_direction = "published_ratio" not in PUBLISHED[published]
    return [each for each in OUTCOMES if not (without_direction and each in OF_A_DIRECTION)]


def family_table(random: np.random.Generator, sets: int) -> str:
    """Return the table of levels over families of claims."""
    rows = []
    for claims, true in FAMILIES:
        for blocks in (8, 12):
            level = family_level(random, sets, blocks, claims, true)
            found = f"{level.found:.0%}" if true else "–"
            shares = [f"{level.false_share:.1%}", f"{level.any_false:.1%}", found]
            rows.append([str(claims), str(true), str(blocks), *shares])
    heads = ["claims", "of which true", "n", "false among those told", "runs with a false one"]
    return _table([*heads, "true ones shown"], rows)


def power_table() -> str:
    """Return the smallest differences that are found in four of five runs."""
    counts = (*BLOCKS, LAST_BLOCKS)
    rows = []
    for noise in (0.02, *NOISES):
        smallest = [smallest_effect(noise * math.sqrt(2), n) for n in counts]
        rows.append([f"{noise:.0%}", *(f"{math.expm1(each):.1%}" for each in smallest)])
    return _table(["noise of a trial", *(f"n = {n}" for n in counts)], rows)


def page(sets: int, seed: int = SEED) -> str:
    """Return the whole page."""
    tables = verdict_tables(np.random.default_rng(seed), sets)
    once, ever = false_alarms_of_peeking(np.random.default_rng(seed), 10 * sets)
    return FRAME.read_text().format(
        sets=f"{sets:,}",
        error=f"{100 * math.sqrt(0.25 / sets):.1f}",
        published_16=tables["1.6"],
        published_11=tables["1.1"],
        published_none=tables["no effect"],
        families=family_table(np.random.default_rng(seed), sets // 2),
        family_sets=f"{sets // 2:,}",
        power=power_table(),
        once=f"{once:.0%}",
        ever=f"{ever:.0%}",
        looks=f"{FIRST_LOOK} to {LAST_LOOK}",
    )


def main() -> None:
    """Simulate, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sets", type=int, default=1000, help="simulated runs for each cell")
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args()
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(given.sets, given.seed))
    print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
