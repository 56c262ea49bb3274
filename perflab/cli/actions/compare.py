"""Compares runs of one experiment, and judges the gate."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from perflab import api
from perflab.analysis.between_runs import ENOUGH_RUNS, compare_runs
from perflab.cli.outputs import print_shown
from perflab.errors import ParameterError
from perflab.recordings import Run
from perflab.recordings.schema import is_imported
from perflab.reports.verdicts import shown_comparison

WORSE, NOT_COMPARABLE, TOO_FEW_RUNS = 3, 4, 5


def compare_sides(names_a: Sequence[str], names_b: Sequence[str], fail_on: float) -> int:
    """Print what changed from the earlier runs to the later ones, and return the exit status."""
    if fail_on and not fail_on >= 1:
        raise ParameterError("--fail-on", [f"{fail_on:g} is below 1; for 10% worse give 1.1"])
    a, b = ([api.open_run(name.strip()) for name in side] for side in (names_a, names_b))
    comparison = compare_runs(a, b)
    worse = comparison.worse(fail_on) if fail_on else comparison.table.head(0)
    print_shown(shown_comparison(a, b, comparison))
    if comparison.obstacles:
        return NOT_COMPARABLE
    if fail_on and not comparison.enough:
        print(_way_out(a, b, fail_on), file=sys.stderr)
        return TOO_FEW_RUNS
    if fail_on and comparison.apart:
        print(f"--fail-on {fail_on:g} judged nothing: {comparison.apart}", file=sys.stderr)
        return NOT_COMPARABLE
    if len(worse):
        print(f"{len(worse)} responses are worse by {fail_on:g} or more")
        return WORSE
    if len(comparison.not_compared) == len(comparison.table):
        print("nothing could be compared", file=sys.stderr)
        return NOT_COMPARABLE
    if fail_on and len(comparison.not_compared):
        many = len(comparison.not_compared)
        print(f"{many} rows could not be compared: --fail-on {fail_on:g} fails", file=sys.stderr)
        return NOT_COMPARABLE
    return 0


def _way_out(a: list[Run], b: list[Run], fail_on: float) -> str:
    counts = f"there are {len(a)} and {len(b)}"
    if is_imported(a[0].record):
        return (
            f"--fail-on {fail_on:g} judged nothing: these are imported results, and nobody knows "
            "whether services started afresh between the loads."
        )
    return (
        f"--fail-on {fail_on:g} judged nothing: it needs {ENOUGH_RUNS} runs on each side; {counts}."
        " Two runs of the same code differ by more than their trials show.\n"
        f"Repeat `perflab run {a[0].record.experiment}` for A and B in turn (A B B A A B) until "
        f"each side has {ENOUGH_RUNS} runs; then "
        f"`perflab compare A1,A2,A3 B1,B2,B3 --fail-on {fail_on:g}`."
    )
