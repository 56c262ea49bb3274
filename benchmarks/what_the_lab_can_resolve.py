"""Write docs/what-the-lab-can-resolve.md: false alarms and power, through the lab's own code.

benchmarks/what_the_lab_can_resolve.py                 # print it
benchmarks/what_the_lab_can_resolve.py --write         # write the page
benchmarks/what_the_lab_can_resolve.py --run latest:lab_check   # at this machine's noise
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perflab import laboratory
from perflab.analysis.methods.comparison import effect_of
from perflab.analysis.methods.family import corrected
from perflab.analysis.methods.rates import Rate
from perflab.analysis.treatments.resolving import as_shares, level_table, power_table
from perflab.analysis.treatments.verdict import Way, judge
from perflab.paths import project_root
from perflab.recordings import Contrast
from perflab.systems.lab.resolution import copies_noise

NOISES = (0.05, 0.08, 0.20)
SETS = 400
RESPONSES, STEPS, STEP_BLOCKS, STEP_NOISE, STEP_EFFECT = 4, 6, 8, 0.08, 0.30
CORRELATIONS = (0.0, 0.5, 0.9)
TRUE_STEPS = (0, 2)
PAGE = "docs/what-the-lab-can-resolve.md"
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
    parts = [HEAD.format(sets=sets), LEVEL, markdown(level), claims_part(sets)]
    return "\n".join([*parts, POWER, markdown(power)])


@dataclass(frozen=True)
class Told:
    """What simulated runs told of no effect: an entry for each run.

    ``share`` and ``any_false`` are over all responses, ``own_share`` and ``own_any`` of one of them
    (shape: runs, responses).
    """

    share: np.ndarray
    any_false: np.ndarray
    own_share: np.ndarray
    own_any: np.ndarray


def told_of_nothing(correlation: float, true_steps: int, sets: int = SETS) -> Told:
    """Simulate runs of a ladder whose first steps are true, and judge all their claims.

    ``correlation`` is that of the noise of two responses within a trial.
    """
    random = np.random.default_rng([round(correlation * 100), true_steps])
    wrong, said = np.zeros((2, sets, RESPONSES))
    for run in range(sets):
        steps = _steps(random, correlation, true_steps)
        is_told = _told(steps)
        wrong[run], said[run] = is_told[:, true_steps:].sum(axis=1), is_told.sum(axis=1)
    return Told(
        wrong.sum(axis=1) / np.maximum(1, said.sum(axis=1)),
        wrong.sum(axis=1) > 0,
        wrong / np.maximum(1, said),
        wrong > 0,
    )


def _steps(random: np.random.Generator, correlation: float, true_steps: int) -> np.ndarray:
    """Return log ratios, shape (responses, steps, blocks); neighbouring steps share a trial."""
    shape = (STEPS + 1, STEP_BLOCKS)
    common = math.sqrt(correlation) * random.standard_normal(shape)
    own = math.sqrt(1 - correlation) * random.standard_normal((RESPONSES, *shape))
    steps: np.ndarray = np.diff(STEP_NOISE * (common + own), axis=1)
    steps[:, :true_steps] += math.log1p(STEP_EFFECT)
    return steps


def _told(steps: np.ndarray) -> np.ndarray:
    """Return which claims a direction is told of, shape (responses, steps), as a run does."""
    names = [f"response {number}" for number in range(RESPONSES) for _ in range(STEPS)]
    effects = [effect_of(pd.Series(each)) for own in steps for each in own]
    among = corrected([each.p_value for each in effects], names)
    judged = [
        judge(effect, _claim(name), own)
        for effect, name, own in zip(effects, names, among, strict=True)
    ]
    told = [each.direction is not Way.NOT_SHOWN for each in judged]
    return np.array(told).reshape(RESPONSES, STEPS)


def _claim(response: str) -> Contrast:
    return Contrast(
        name="step", claim="step", response=response, numerator={}, denominator={},
        published_direction="greater", source="simulated",
    )  # fmt: skip


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
        noise=STEP_NOISE, effect=STEP_EFFECT, sets=sets, table=markdown(pd.DataFrame(rows)),
        alarms=_rate(found[first, 0].any_false), alarms_alike=_rate(found[last, 0].any_false),
        alike=last,
    )  # fmt: skip


def _mean(shares: np.ndarray) -> str:
    return f"{shares.mean():.1%} ± {2 * shares.std(ddof=1) / math.sqrt(len(shares)):.1%}"


def _rate(hits: np.ndarray) -> str:
    rate = Rate(int(hits.sum()), len(hits))
    return f"{rate.hits / rate.n:.0%} {rate.bounds()}"


def markdown(table: pd.DataFrame) -> str:
    """Return a table as Markdown."""
    rows = [list(table.columns), ["---"] * len(table.columns), *table.to_numpy().tolist()]
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in rows)


def main() -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"write {PAGE}")
    parser.add_argument("--run", default="", help="a run of lab_check whose noise to take")
    parser.add_argument("--sets", type=int, default=SETS)
    given = parser.parse_args()
    noises = NOISES
    if given.run:
        noises = (copies_noise(laboratory.open_run(given.run)),)
    found = page(noises, given.sets)
    if given.write:
        target = project_root() / PAGE
        target.parent.mkdir(exist_ok=True)
        target.write_text(found)
        print(target)
    else:
        print(found)


if __name__ == "__main__":
    main()
