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

from perflab.analysis.methods.two_samples import unpaired
from perflab.analysis.treatments.between_runs import (
    COLUMNS,
    DIFFERS,
    judged_table,
    table_row,
)
from perflab.analysis.trials.summary import measured_responses
from perflab.numerals import counted
from perflab.recordings import Response, Run

NOTES = (
    "nothing pairs these loads: a drift between those of A and those of B counts as change",
    "whether services were started afresh between loads, and on which machine, is unknown",
)


def against_first(run: Run) -> pd.DataFrame:
    """Return every other treatment of an imported run against the first, with n loads a side.

    Columns are those of :class:`perflab.analysis.treatments.between_runs.RunComparison`'s table.
    """
    first, *others = [each.name for each in run.record.treatments]
    responses = [each for each in measured_responses(run).values() if each.better != "neither"]
    trials = run.compared_trials()
    tables = [
        judged_table([_row(trials, each, (first, other)) for each in responses], _differs)
        for other in others
    ]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=COLUMNS)


def _row(trials: pd.DataFrame, response: Response, sides: tuple[str, str]) -> dict[str, Any] | None:
    a, b = (trials.loc[trials["treatment"] == name, response.name].dropna() for name in sides)
    if not (len(a) and len(b)) or not ((a > 0).all() and (b > 0).all()):
        return None
    found = unpaired(np.asarray(b), np.asarray(a))
    return table_row(f"{sides[1]} / {sides[0]}", response, found, (1, 1), (len(a), len(b)))


def _differs(row: dict[Any, Any]) -> str:
    return f"{DIFFERS}, {row['trials_a']} against {counted(row['trials_b'], 'load')}"
