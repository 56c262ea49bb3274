"""Write docs/steadiness.md: how often which drift of response times refuses a treatment.

benchmarks/steadiness.py            # print it
benchmarks/steadiness.py --write    # write the page
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.what_the_lab_can_resolve import markdown
from perflab.analysis.methods.comparison import effect_of
from perflab.analysis.methods.rates import Rate
from perflab.analysis.treatments.resolving import as_shares
from perflab.load.trend import WINDOWS, is_clear, log_trend
from perflab.paths import project_root
from perflab.recordings.steadiness import GROSS_TREND, MAX_TREND, SMALLEST_N, over_blocks

PAGE = "docs/steadiness.md"
SETS = 400
BLOCKS = (4, 6, 8, 12)
DRIFTS = (0.0, 0.05, 0.10, 0.20, 0.40)
# What a machine does to the medians of a load's windows: each is off by its own, and the speed
# wanders from window to window, with the tails of Student's t of 3 degrees.
OWN_NOISE, LEVEL_NOISE = 0.03, 0.03
CALM, STIRRED, WILD = "calm", "stirred", "wild"
MACHINES = {CALM: 0.01, STIRRED: 0.03, WILD: 0.06}
# For the choice of the factor from which a trial is refused by itself.
FACTORS = (1.1, 1.25, 1.5, 2.0, math.inf)
BURSTS, BURST_SHARE, BURST_BLOCKS, BURST_EFFECT = (1.25, 1.5, 2.0, 3.0), 0.15, 8, 0.10
REQUESTS = (50, 100, 300, 1000)
HEAD = """# How steady a load must be

Where response times rise or fall over a load, one twice as long has others. `perflab load` has one
load, and marks a clear trend beyond a tenth. A run has blocks: a load that is not steady moves the
same way in every block, a machine that stirs moves loads both ways. So a run judges the trends of a
treatment's loads together, by the rule of `perflab/recordings/steadiness.py`: it refuses the
treatment where the mean trend is beyond a tenth, or where its 90% interval reaches beyond a factor
of 1.5. A wider interval around the same mean refuses no less. One trial is refused by itself only
where its trend is clear and beyond a factor of 1.5.

All shares are simulated, {sets} runs for each cell, with their exact 95% intervals, through the
lab's own code. Made by `benchmarks/steadiness.py`. On a *calm* machine {calm:.0%} of steady loads
have a clear trend beyond a tenth by themselves, on a *stirred* one {stirred:.0%}, as on the machine
where this lab was built, on a *wild* one {wild:.0%}: so many trials were refused when each was
judged alone.
"""
REFUSED = """## Treatments refused

Loads begin so much slower than they end, in every block (a warm-up that is too short), and fall
evenly. 0% is a false alarm. At the limit of a tenth the rule is a coin, and cannot be else.
"""
DIFFERENT = """## Equal treatments called different

Two treatments that settle at the same response time, of which one drifts so on a stirred machine:
share of all runs that were not refused and told a difference. What passes unnoticed moves a mean by
half the drift: differences of a few percent need warm-ups that leave none.
"""
SMALL = """## Small loads

A load of few requests knows its own trend badly, and what is not known to be steady is refused.
Steady treatments refused on a calm machine, by requests of a trial, where response times are
exponential: most spread less. Below 50 requests there is no trend and nothing is refused. The way
out is longer loads.
"""
GROSS = """## From which factor a trial is refused by itself

Beside the stirring, {share:.0%} of all loads become so much slower, or faster, at some moment and
stay so. Share of runs that find a difference of {effect:.0%} in {blocks} blocks, by the factor of a
clear trend from which trials are refused: refusing from 1.1 on costs blocks, refusing none lets the
bursts in; 1.25 to 1.5 find most, and 1.5 throws less away.
"""


@dataclass(frozen=True)
class Loads:
    """Simulated loads: the logs of the medians of their windows, along the last axis."""

    log_middles: np.ndarray

    @property
    def trends(self) -> np.ndarray:
        """Return their log trends."""
        return log_trend(self.log_middles)

    @property
    def levels(self) -> np.ndarray:
        """Return the logs of what their mean response times would be."""
        levels: np.ndarray = np.log(np.exp(self.log_middles).mean(axis=-1))
        return levels

    def beyond(self, factor: float) -> np.ndarray:
        """Return which have a clear trend beyond a factor."""
        beyond: np.ndarray = is_clear(self.log_middles) & (np.abs(self.trends) > math.log(factor))
        return beyond


def loads(
    random: np.random.Generator, shape: tuple[int, ...], wander: float, drift: float = 0.0
) -> Loads:
    """Draw loads that settle at a log response time of 0, and begin ``drift`` above it."""
    steps = wander * random.standard_t(3, (*shape, WINDOWS)) / math.sqrt(3)
    walk = np.cumsum(steps, axis=-1)
    walk -= walk.mean(axis=-1, keepdims=True)
    level = LEVEL_NOISE * random.standard_normal((*shape, 1))
    noise = level + OWN_NOISE * random.standard_normal((*shape, WINDOWS))
    return Loads(walk + noise + math.log1p(drift) * np.linspace(1, 0, WINDOWS))


def refused(blocks: int, drift: float, machine: str = STIRRED, sets: int = SETS) -> Rate:
    """Return how often a treatment whose loads drift so is refused."""
    trends = loads(_random(blocks, drift, machine), (sets, blocks), MACHINES[machine], drift).trends
    return Rate(sum(over_blocks(own).refused for own in trends), sets)


def alone(machine: str, sets: int = 20_000) -> float:
    """Return the share of steady loads that have a clear trend beyond a tenth."""
    drawn = loads(_random(0, 0, machine), (sets,), MACHINES[machine])
    return float(drawn.beyond(math.exp(MAX_TREND)).mean())


def called_different(blocks: int, drift: float, sets: int = SETS) -> Rate:
    """Return how often treatments that settle alike, of which one drifts, are called different."""
    random = _random(blocks, drift, STIRRED)
    sides = [loads(random, (sets, blocks), MACHINES[STIRRED], each) for each in (0.0, drift)]
    gross = [side.beyond(math.exp(GROSS_TREND)) for side in sides]
    hits = 0
    for run in range(sets):
        if any(over_blocks(side.trends[run]).refused for side in sides):
            continue
        kept = ~(gross[0][run] | gross[1][run])
        hits += _differ((sides[1].levels - sides[0].levels)[run][kept])
    return Rate(hits, sets)


def refused_when_small(requests: int, blocks: int, sets: int = SETS) -> Rate:
    """Return how often a steady treatment of so small loads is refused, on a calm machine."""
    random = _random(blocks, requests, CALM)
    drawn = loads(random, (sets, blocks), MACHINES[CALM]).log_middles
    times = random.exponential(size=(*drawn.shape, requests // WINDOWS))
    trends = log_trend(drawn + np.log(np.median(times, axis=-1)))
    return Rate(sum(over_blocks(own).refused for own in trends), sets)


def found_despite(burst: float, factor: float, sets: int = SETS) -> Rate:
    """Return how often a true difference is found where trials beyond a factor are refused."""
    random = _random(BURST_BLOCKS, burst, STIRRED)
    shape = (sets, BURST_BLOCKS, 2)
    hit = random.choice([-1, 0, 1], shape, p=[BURST_SHARE / 2, 1 - BURST_SHARE, BURST_SHARE / 2])
    after = np.arange(WINDOWS) >= random.integers(2, WINDOWS - 1, shape)[..., None]
    steady = loads(random, shape, MACHINES[STIRRED]).log_middles
    drawn = Loads(steady + math.log(burst) * hit[..., None] * after)
    kept = ~drawn.beyond(factor).any(axis=-1)
    ratios = drawn.levels[..., 0] - drawn.levels[..., 1] + math.log1p(BURST_EFFECT)
    return Rate(
        sum(_differ(own[each], above=True) for own, each in zip(ratios, kept, strict=True)),
        sets,
    )


def _differ(log_ratios: np.ndarray, above: bool = False) -> bool:
    if len(log_ratios) < SMALLEST_N:
        return False
    effect = effect_of(pd.Series(log_ratios))
    return effect.low > 1 or (not above and effect.high < 1)


def _random(blocks: int, drift: float, machine: str) -> np.random.Generator:
    return np.random.default_rng([blocks, round(drift * 1e6), list(MACHINES).index(machine)])


def by_blocks(rows: dict[str, Callable[[int], Rate]], named: str) -> str:
    """Return a table of rates: its rows by name, a column per number of blocks."""
    table = [
        {named: name, **{f"{count} blocks": of(count) for count in BLOCKS}}
        for name, of in rows.items()
    ]
    return markdown(as_shares(pd.DataFrame(table)))


def _drifting(machine: str, sets: int) -> str:
    rows = {
        f"{drift:.0%}": lambda count, drift=drift: refused(count, drift, machine, sets)
        for drift in DRIFTS
    }
    return by_blocks(rows, f"drift, {machine} machine")


def page(sets: int = SETS) -> str:
    """Return the page."""
    share = {name: alone(name) for name in MACHINES}
    different = {
        f"{drift:.0%}": lambda count, drift=drift: called_different(count, drift, sets)
        for drift in DRIFTS
    }
    small = {
        f"{count:,}": lambda blocks, count=count: refused_when_small(count, blocks, sets)
        for count in REQUESTS
    }
    gross = [
        {"change": f"{burst:g}x", **{
            "none" if math.isinf(factor) else f"{factor:g}": found_despite(burst, factor, sets)
            for factor in FACTORS
        }}
        for burst in BURSTS
    ]  # fmt: skip
    return "\n".join([
        HEAD.format(sets=sets, **share),
        REFUSED,
        *(_drifting(machine, sets) for machine in MACHINES),
        DIFFERENT,
        by_blocks(different, "drift of one"),
        SMALL,
        by_blocks(small, "requests"),
        GROSS.format(share=BURST_SHARE, effect=BURST_EFFECT, blocks=BURST_BLOCKS),
        markdown(as_shares(pd.DataFrame(gross))),
    ])  # fmt: skip


def main() -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"write {PAGE}")
    parser.add_argument("--sets", type=int, default=SETS)
    given = parser.parse_args()
    found = page(given.sets)
    if given.write:
        (project_root() / PAGE).write_text(found)
        print(project_root() / PAGE)
    else:
        print(found)


if __name__ == "__main__":
    main()
