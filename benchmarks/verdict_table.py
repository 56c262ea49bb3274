"""Which verdict is given under which truth, by simulation.

Writes ``benchmarks/results/verdicts.md``.

The same seed gives the same page, byte for byte.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from benchmarks import bench
from perflab.analysis.decision import decide
from perflab.analysis.results import AgainstStudy
from perflab.analysis.scope import ALSO_AT_THE_END, THIS_LOAD_ONLY, scope_of
from perflab.analysis.verdict import judge
from perflab.load.checks.trend import to_its_end
from perflab.paths import project_root
from perflab.statistics.comparison import effect_of
from perflab.statistics.sample_sizes import POWER, power
from tests.support.simulations.client_time import BY_SIDE, BY_TRIAL, ClientTime
from tests.support.simulations.client_time import held as held_by_client
from tests.support.simulations.drift import Drift, blocks_of, held
from tests.support.simulations.verdicts import (
    FIRST_LOOK,
    LAST_LOOK,
    PUBLISHED,
    claim,
    false_alarms_of_peeking,
    family_level,
    verdicts,
)

SEED = 20_261_122
TRUTHS = (1.0, 1.1, 1.3, 1.6, 2.0)
NOISES = (0.05, 0.08, 0.20)
BLOCKS = 8
BLOCKS_OF_POWER = (6, 8, 12, 24)
# The results of each column.
COLUMNS = {
    "as published": (AgainstStudy.AS_PUBLISHED,),
    "in the direction published": (AgainstStudy.IN_DIRECTION,),
    "less or more": (AgainstStudy.LESS, AgainstStudy.MORE),
    "no effect": (AgainstStudy.NO_EFFECT,),
    "the other way": (AgainstStudy.OTHER_WAY,),
    "not decided": (AgainstStudy.NOT_DECIDED,),
}
OF_A_DIRECTION = (AgainstStudy.IN_DIRECTION, AgainstStudy.NO_EFFECT, AgainstStudy.OTHER_WAY)
FAMILIES = ((1, 0), (1, 1), (5, 0), (5, 1), (5, 5), (15, 0), (15, 1), (15, 5), (15, 15))
DRIFTS = {
    "none": Drift(),
    "20% on both sides": Drift(0.2, 0.2),
    "5% on one side": Drift(0.05),
    "10% on one side": Drift(0.1),
    "20% on one side": Drift(0.2),
    "20% on one side, most of it at first": Drift(0.2, settles=True),
}
CLIENT_SHARES, CLIENT_BLOCKS = (0.05, 0.09, 0.15, 0.30), 8
CLIENT_TIMES = {
    "as much on both sides": ClientTime(0),
    "any part in each trial": ClientTime(0, BY_TRIAL),
    "found on one side alone": ClientTime(0, one_sided=True),
    BY_SIDE: ClientTime(0, BY_SIDE),
}
DRIFT_BLOCKS, DRIFT_RATIO = (3, 8), 1.1
PAGE = project_root() / "benchmarks" / "results" / "verdicts.md"
FRAME = Path(__file__).with_name("verdict_table.md")


def _table(heads: list[str], rows: list[list[str]]) -> str:
    return bench.markdown(pd.DataFrame(rows, columns=heads), "---:").rstrip()


def verdict_tables(random: np.random.Generator, sets: int) -> dict[str, str]:
    """Return a table of verdicts by truth, noise and blocks, for each published effect."""
    rows: dict[str, list[list[str]]] = {name: [] for name in PUBLISHED}
    for truth in TRUTHS:
        for noise in NOISES:
            for name, counts in verdicts(random, sets, BLOCKS, truth, noise).items():
                told = (sum(counts[each] for each in of) for of in columns_of(name).values())
                shares = [f"{count / sets:.0%}" for count in told]
                rows[name].append([f"{truth:g}", f"{noise:.0%}", *shares])
    return {name: _table(["truth", "noise", *columns_of(name)], own) for name, own in rows.items()}


def columns_of(published: str) -> dict[str, tuple[AgainstStudy, ...]]:
    """Return the columns of the verdicts that a published effect can have."""
    if "published_ratio" in PUBLISHED[published]:
        return COLUMNS
    return {head: of for head, of in COLUMNS.items() if not set(of) & set(OF_A_DIRECTION)}


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


def smallest_effect(noise: float, blocks: int) -> float:
    """Return the smallest log ratio that ``blocks`` find in four of five runs."""
    return float(brentq(lambda effect: power(effect, noise, blocks) - POWER, 0, 1))


def power_table() -> str:
    """Return the smallest differences that are found in four of five runs."""
    rows = []
    for noise in (0.02, *NOISES):
        smallest = [smallest_effect(noise * math.sqrt(2), n) for n in BLOCKS_OF_POWER]
        rows.append([f"{noise:.0%}", *(f"{math.expm1(each):.1%}" for each in smallest)])
    return _table(["noise of a trial", *(f"n = {n}" for n in BLOCKS_OF_POWER)], rows)


def scopes(
    random: np.random.Generator, sets: int, blocks: int, drift: Drift, ratio: float
) -> Counter[str]:
    """Return how often runs without a published effect have each scope, without its numbers."""
    contrast, told = claim(), Counter[str]()
    for _ in range(sets):
        drawn = blocks_of(random, blocks, drift, ratio)
        log_ratios = drawn.mean(axis=1)
        effect = effect_of(pd.Series(log_ratios))
        drifts = [to_its_end(row) for row in drawn]
        scope = scope_of(effect, contrast, judge(effect, contrast), decide(effect), drifts)
        told[scope.partition(";")[0]] += 1
    return told


def drift_table(random: np.random.Generator, sets: int) -> str:
    """Return how often intervals hold their ratio under drifts, and which scope is told."""
    rows = []
    for name, drift in DRIFTS.items():
        for blocks in DRIFT_BLOCKS:
            holds = held(random, sets, blocks, drift)
            told = scopes(random, sets, blocks, drift, DRIFT_RATIO)
            shares = [told[words] / sets for words in (ALSO_AT_THE_END, THIS_LOAD_ONLY)]
            rates = [f"{rate.hits / rate.n:.1%}" for rate in (holds.load, holds.end)]
            rows.append([name, str(blocks), *rates, *(f"{share:.0%}" for share in shares)])
    heads = ["drift", "n", "load's ratio held", "end's ratio held"]
    return _table([*heads, ALSO_AT_THE_END, THIS_LOAD_ONLY], rows)


def client_table(random: np.random.Generator, sets: int) -> str:
    """Return how often intervals hold the ratio of times that hold some of the client's own."""
    rows = []
    for share in CLIENT_SHARES:
        for words, client in CLIENT_TIMES.items():
            holds = held_by_client(random, sets, CLIENT_BLOCKS, replace(client, share=share), 1.3)
            rates = (holds.within, holds.measured, holds.shown)
            rows.append([f"{share:.0%}", words, *(f"{rate.hits / rate.n:.0%}" for rate in rates)])
    heads = ["client's share", "what of it counts", "held", "held by the measured times alone"]
    return _table([*heads, "shown to differ"], rows)


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
        also=ALSO_AT_THE_END,
        only=THIS_LOAD_ONLY,
        drift_sets=f"{sets // 2:,}",
        drift_ratio=DRIFT_RATIO,
        drifts=drift_table(np.random.default_rng(seed), sets // 2),
        client_sets=f"{sets // 2:,}",
        client_blocks=CLIENT_BLOCKS,
        client_times=client_table(np.random.default_rng(seed), sets // 2),
        once=f"{once:.0%}",
        ever=f"{ever:.0%}",
        wakeups=f"{FIRST_LOOK} to {LAST_LOOK}",
    )


def main() -> None:
    """Simulate, and write the page."""
    given = bench.options(__doc__, sets=(1000, "simulated runs for each cell"), seed=SEED)
    PAGE.write_text(page(given.sets, given.seed))
    print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
