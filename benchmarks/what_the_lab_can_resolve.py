"""Write benchmarks/results/resolution.md: false alarms and power, through the lab's own code.

With ``--run latest:lab_check`` the tables are printed at the noise of that run's machine, and
nothing is written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from benchmarks import bench
from perflab import api
from perflab.paths import project_root
from perflab.statistics.two_samples import Rate
from perflab.systems.lab.resolution import BLOCKS, copies_noise
from tests.support.simulations.differences import CONDITIONS, as_shares, different, power_table
from tests.support.simulations.several_responses import (
    RESPONSES,
    STEP_BLOCKS,
    STEP_EFFECT,
    STEP_NOISE,
    STEPS,
    told_of_nothing,
)

NOISES = (0.05, 0.08, 0.20)
SETS = 400
CORRELATIONS = (0.0, 0.5, 0.9)
TRUE_STEPS = (0, 2)
PAGE = project_root() / "benchmarks" / "results" / "resolution.md"
HEAD = """# What the lab can resolve

Before any verdict: how often does a comparison of two treatments call equal ones different, and how
often does it find a difference that is there? Two treatments are drawn in random blocks, {sets}
runs for each cell, and judged by the code that judges runs. Every share stands with its exact 95%
interval. The noise is that of one trial beyond treatment and block; `lab_check` measures it on your
machine, and shows the second table at that noise. Made by `benchmarks/what_the_lab_can_resolve.py`.
"""
LEVEL = """## False alarms

Equal treatments, noise of a trial 5%: at most 5% should be called different. *Drift*: the machine's
speed changes by ten times the noise over the run. *Outliers*: one trial in ten is off by five times
the noise. *Heavy tails*: Student's t of 3 degrees. Processes that are not started afresh for every
block are not among these: they make false alarms that no number of blocks takes away.
"""
CLAIMS = """## Several responses in one run

A run judges claims about several responses, which move together more or less. Drawn is a ladder of
{steps} steps, each a claim about each of {responses} responses: {claims} claims; {blocks} blocks,
noise {noise:.0%}, true steps {effect:.0%} in every response, {sets} runs for each row. p is
adjusted among the claims about one response. *False among those told*: of the directions told in a
run (shown or opposite), the average share that is of no effect at all (± two standard errors).
*Runs with a false one* tell at least one such.

{table}
What is held is the share of false directions among those told about **one response**: at most 5%,
however responses move together. Over all responses it stays so where some steps differ. What is not
held is that a **run** tells no false direction at all: where nothing differs, {alarms} of runs tell
one about some of {responses} responses that have nothing in common, and {alarms_alike} where their
correlation is {alike:g}. So where one response moves alone, and others that should move with it do
not, measure once more before you believe it.
"""
POWER = """## What is found

Share of runs whose interval lies on the right side of no difference.
"""


def page(
    noises: tuple[float, ...] = NOISES, sets: int = SETS, blocks: tuple[int, ...] | None = None
) -> str:
    """Return the page."""
    chosen = {} if blocks is None else {"blocks": blocks}
    level = as_shares(level_table(sets=sets, **chosen))
    power = as_shares(power_table(noises, sets=sets, **chosen))
    parts = [HEAD.format(sets=sets), LEVEL, bench.markdown(level), claims_part(sets)]
    return "\n".join([*parts, POWER, bench.markdown(power)])


def level_table(blocks: Sequence[int] = BLOCKS, sets: int = SETS) -> pd.DataFrame:
    """Return false alarms between equal treatments: a row per condition, a column per blocks."""
    rows = [
        {"condition": each, **{
            f"{count} blocks": different(count, 0.05, 0.0, each, sets) for count in blocks
        }}
        for each in CONDITIONS
    ]  # fmt: skip
    return pd.DataFrame(rows)


def claims_part(sets: int) -> str:
    """Return the part about several responses."""
    found = {
        (correlation, true): told_of_nothing(correlation, true, sets)
        for true in TRUE_STEPS
        for correlation in CORRELATIONS
    }
    rows = [
        {
            "correlation": f"{correlation:g}",
            "true steps": f"{true} of {STEPS}",
            "false among those told, one response": _mean(told.own_share.mean(axis=1)),
            "runs with a false one, one response": _mean(told.own_any.mean(axis=1)),
            "false among those told, all": _mean(told.share),
            "runs with a false one, all": _rate(told.any_false),
        }
        for (correlation, true), told in found.items()
    ]
    first, last = CORRELATIONS[0], CORRELATIONS[-1]
    return CLAIMS.format(
        steps=STEPS, responses=RESPONSES, claims=STEPS * RESPONSES, blocks=STEP_BLOCKS,
        noise=STEP_NOISE, effect=STEP_EFFECT, sets=sets, table=bench.markdown(pd.DataFrame(rows)),
        alarms=_rate(found[first, 0].any_false), alarms_alike=_rate(found[last, 0].any_false),
        alike=last,
    )  # fmt: skip


def _mean(shares: np.ndarray) -> str:
    return f"{shares.mean():.1%} ± {2 * shares.std(ddof=1) / math.sqrt(len(shares)):.1%}"


def _rate(hits: np.ndarray) -> str:
    rate = Rate(int(hits.sum()), len(hits))
    return f"{rate.hits / rate.n:.0%} {rate.bounds()}"


def main() -> None:
    """Print the page, or write it."""
    given = bench.options(__doc__, run=("", "a run of lab_check whose noise to take"), sets=SETS)
    if given.run:
        print(page((copies_noise(api.open_run(given.run)),), given.sets))
    else:
        PAGE.write_text(page(sets=given.sets))
        print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
