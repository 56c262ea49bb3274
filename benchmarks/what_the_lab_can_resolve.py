"""Write docs/what-the-lab-can-resolve.md: false alarms and power, through the lab's own code.

benchmarks/what_the_lab_can_resolve.py                 # print it
benchmarks/what_the_lab_can_resolve.py --write         # write the page
benchmarks/what_the_lab_can_resolve.py --run latest:lab_check   # at this machine's noise
"""

from __future__ import annotations

import argparse

import pandas as pd

from perflab import laboratory
from perflab.analysis.treatments.resolving import as_shares, level_table, power_table
from perflab.paths import project_root
from perflab.systems.lab.resolution import copies_noise

NOISES = (0.05, 0.08, 0.20)
SETS = 400
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
    parts = [HEAD.format(sets=sets), LEVEL, markdown(level), POWER, markdown(power)]
    return "\n".join(parts)


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
