"""Carries out a sweep, or prints what it would do."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from rich.table import Table

from perflab import systems
from perflab.cli.outputs import print_table
from perflab.sweeps.cells import Sweep, open_sweep
from perflab.sweeps.execution import SweepOptions, carry_out_sweep
from perflab.trials.duration import about, earlier_runs, expected_s


def carry_out(file: Path, options: SweepOptions, scheduler: str, results: str) -> Mapping[str, int]:
    """Execute all cells, here or on the workers of a scheduler; return their number by state."""
    sweep = open_sweep(file)
    print(_headline(sweep))
    if scheduler:
        # An extra: only several hosts need Dask.
        from perflab.sweeps.hosts.dispatch import carry_out_on

        outcome = carry_out_on(sweep, options, scheduler, results)
    else:
        outcome = carry_out_sweep(sweep, options)
    counts = ", ".join(f"{count} {state}" for state, count in outcome.states.items())
    print(f"{len(sweep.cells)} cells: {counts}")
    print(outcome.folder / "index.html")
    if outcome.states.get("failed"):
        print(
            "perflab: this page says why cells failed, and links their notebooks and logs; "
            "'--resume' tries them again",
            file=sys.stderr,
        )
    return outcome.states


def print_plan(file: Path) -> None:
    """Print every cell with the time it takes, as far as earlier runs tell, and the whole."""
    sweep = open_sweep(file)
    runs_of = cache(lambda name: [*earlier_runs(name)])
    known = []
    table = Table("cell", "what", "trials", "takes")
    for cell in sweep.cells:
        experiment = systems.experiment(cell.notebook)
        plan = experiment.plan(experiment.check(cell.parameters))
        seconds = expected_s(plan, runs_of(cell.notebook))
        known += [seconds] if seconds else []
        takes = about(seconds) if seconds else "not known"
        table.add_row(cell.id, cell.label, str(cell.trials), takes)
    print_table(table)
    of = "" if len(known) == len(sweep.cells) else f" for {len(known)} of the cells"
    print(_headline(sweep) + (f"; {about(sum(known))}{of}, by earlier runs" if known else ""))


def _headline(sweep: Sweep) -> str:
    trials = sum(cell.trials for cell in sweep.cells)
    return f"{sweep.title}: {len(sweep.cells)} cells, {trials} trials"
