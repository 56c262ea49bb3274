"""Write docs/steadiness.md: how often which drift of response times refuses a treatment."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from benchmarks import bench
from perflab.analysis.decision import as_shares
from perflab.load.checks.trend import WINDOWS, log_trend
from perflab.paths import project_root
from perflab.recordings.steadiness import MAX_TREND, over_blocks
from perflab.statistics.two_samples import Rate
from tests.support.simulations.steadiness import (
    BLOCKS,
    CALM,
    DRIFTS,
    MACHINES,
    SETS,
    STIRRED,
    Loads,
    called_different,
    differ,
    drawn_from,
    loads,
    refused,
)

# So many loads become slower or faster at some moment; so large is a true difference beside it.
BURST_SHARE, BURST_BLOCKS, BURST_EFFECT = 0.15, 8, 0.10
PAGE = project_root() / "docs" / "steadiness.md"
# From which factor on a trial is refused by itself; what a burst does; requests of a load.
FACTORS, BURSTS = (1.1, 1.25, 1.5, 2.0, math.inf), (1.25, 1.5, 2.0, 3.0)
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


def alone(machine: str, sets: int = 20_000) -> float:
    """Return the share of steady loads that have a clear trend beyond a tenth."""
    drawn = loads(drawn_from(0, 0, machine), (sets,), MACHINES[machine])
    return float(drawn.beyond(math.exp(MAX_TREND)).mean())


def refused_when_small(requests: int, blocks: int, sets: int = SETS) -> Rate:
    """Return how often a steady treatment of so small loads is refused, on a calm machine."""
    random = drawn_from(blocks, requests, CALM)
    drawn = loads(random, (sets, blocks), MACHINES[CALM]).log_middles
    times = random.exponential(size=(*drawn.shape, requests // WINDOWS))
    trends = log_trend(drawn + np.log(np.median(times, axis=-1)))
    return Rate(sum(over_blocks(own).refused for own in trends), sets)


def found_despite(burst: float, factor: float, sets: int = SETS) -> Rate:
    """Return how often a true difference is found where trials beyond a factor are refused."""
    random = drawn_from(BURST_BLOCKS, burst, STIRRED)
    shape = (sets, BURST_BLOCKS, 2)
    hit = random.choice([-1, 0, 1], shape, p=[BURST_SHARE / 2, 1 - BURST_SHARE, BURST_SHARE / 2])
    after = np.arange(WINDOWS) >= random.integers(2, WINDOWS - 1, shape)[..., None]
    steady = loads(random, shape, MACHINES[STIRRED]).log_middles
    drawn = Loads(steady + math.log(burst) * hit[..., None] * after)
    kept = ~drawn.beyond(factor).any(axis=-1)
    ratios = drawn.levels[..., 0] - drawn.levels[..., 1] + math.log1p(BURST_EFFECT)
    return Rate(
        sum(differ(own[each], above=True) for own, each in zip(ratios, kept, strict=True)),
        sets,
    )


def by_blocks(rows: dict[str, Callable[[int], Rate]], named: str) -> str:
    """Return a table of rates: its rows by name, a column per number of blocks."""
    table = [
        {named: name, **{f"{count} blocks": of(count) for count in BLOCKS}}
        for name, of in rows.items()
    ]
    return bench.markdown(as_shares(pd.DataFrame(table)))


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
        bench.markdown(as_shares(pd.DataFrame(gross))),
    ])  # fmt: skip


def main() -> None:
    """Simulate, and write the page."""
    given = bench.options(__doc__, sets=(SETS, "simulated runs for each cell"))
    PAGE.write_text(page(given.sets))
    print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
