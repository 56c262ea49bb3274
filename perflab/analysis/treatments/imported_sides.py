"""Treatments of one imported run against each other: loads that other tools told of.

The unit is the load, a file mostly. Nobody knows in which order, and on what, loads were made that
were not the lab's: nothing pairs them. Better and worse are not said: whether services were started
afresh between loads is unknown, and with it whether the interval holds all that differs from one
start to the next.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from perflab.analysis.methods.comparison import benjamini_hochberg
from perflab.analysis.methods.two_samples import unpaired
from perflab.analysis.treatments.between_runs import (
    COLUMNS,
    DIFFERS,
    UNCLEAR,
    RunComparison,
    is_certain,
    table_row,
)
from perflab.analysis.trials.summary import measured_responses
from perflab.errors import ParameterError
from perflab.numerals import counted
from perflab.recordings import Response, Run
from perflab.recordings.imported import is_imported

UNPAIRED = "nothing pairs these loads: a drift between those of A and those of B counts as change"
UNKNOWN = "whether services were started afresh between loads, and on which machine, is unknown"


def compare_treatments(run: Run, a: str, b: str) -> RunComparison:
    """Compare two treatments of an imported run: ratio B / A of every response, with n loads each.

    Raises
    ------
    ParameterError
        The run is the lab's own, or has no such treatment.
    """
    _check(run, a, b)
    trials = run.compared_trials()
    rows = [
        _row(trials, each, (a, b))
        for each in measured_responses(run).values()
        if each.better != "neither"
    ]
    table = pd.DataFrame([row for row in rows if row is not None], columns=COLUMNS)
    table["p_adjusted"] = benjamini_hochberg(table["p_adjusted"].tolist())
    table["verdict"] = [_verdict(row) for row in table.to_dict("records")]
    notes = (UNPAIRED, UNKNOWN, *map(str, run.record.warnings))
    return RunComparison((), notes, False, table)


def against_first(run: Run) -> pd.DataFrame:
    """Return every other treatment of an imported run against the first, with the same columns."""
    first, *others = [each.name for each in run.record.treatments]
    tables = [compare_treatments(run, first, other).table for other in others]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=COLUMNS)


def _check(run: Run, a: str, b: str) -> None:
    known = [each.name for each in run.record.treatments]
    problems = [
        f"run {run.run_id} has no treatment '{name}'; there are: {', '.join(known)}"
        for name in (a, b)
        if name not in known
    ]
    if a == b:
        problems.append(f"'{a}' with itself is no comparison")
    if not is_imported(run.record):
        problems = [
            f"run {run.run_id} is the lab's own: its treatments are compared within blocks "
            f"(perflab show {run.run_id})"
        ]
    if problems:
        raise ParameterError("perflab compare", problems)


def _row(trials: pd.DataFrame, response: Response, sides: tuple[str, str]) -> dict[str, Any] | None:
    a, b = (trials.loc[trials["treatment"] == name, response.name].dropna() for name in sides)
    if not (len(a) and len(b)) or not ((a > 0).all() and (b > 0).all()):
        return None
    found = unpaired(np.asarray(b), np.asarray(a))
    return table_row(f"{sides[1]} / {sides[0]}", response, found, (1, 1), (len(a), len(b)))


def _verdict(row: dict[Any, Any]) -> str:
    if not is_certain(row):
        return UNCLEAR
    return f"{DIFFERS}, {row['trials_a']} against {counted(row['trials_b'], 'load')}"
