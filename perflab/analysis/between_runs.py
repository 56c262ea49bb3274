"""Runs of one experiment against others: what changed between the two sides?

Two runs of the same code differ by more than the trials within them show, so the unit is the run.
From three runs a side on, a t test compares the means of the runs' log responses, and a side may be
called better or worse. With fewer runs the variance between runs is unknown: a response may be said
to differ, by the trials, but not why. In simulation, intervals of trials call 16 to 80% of equal
sides different. Treatments that can be interleaved belong into one run, where blocks pair them.

A machine that drifts makes runs differ that lie apart in time. So runs are called better or worse
only if A and B alternate: in the order of time every two runs are one of each side. Then a linear
drift adds more to the scatter within the sides than to their difference
(``benchmarks/results/units.txt``).

The module also compares the treatments of one imported run. There the unit is the load of another
tool. Nothing pairs these loads, and nobody knows whether services were started afresh between them,
so they are never called better or worse.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from perflab.analysis.effect_words import unit_of_difference
from perflab.analysis.noise import doubt
from perflab.analysis.results import Compared
from perflab.analysis.run_sides import (
    AT_DIFFERENT_TIMES,
    drifts,
    middle_s,
    obstacles,
    sources,
    times_apart,
    unequally_refused,
)
from perflab.analysis.typical_values import measured_responses
from perflab.recordings import Response, Run
from perflab.recordings.imports.results import NONE_FAILED, doubts
from perflab.recordings.responses import (
    MAX_CLIENT_SHARE,
    at_least_column,
    at_most_column,
    client_column,
    lower_end_column,
    resolution_column,
    without_client,
)
from perflab.recordings.schema import is_imported
from perflab.recordings.tables import NOT_JUDGED
from perflab.statistics.comparison import benjamini_hochberg
from perflab.statistics.in_words import counted
from perflab.statistics.mean_intervals import CONFIDENCE, SMALLEST_N
from perflab.statistics.two_samples import Shift, shift, wider_t

ENOUGH_RUNS = 3
BETTER, WORSE = Compared.BETTER.value, Compared.WORSE.value
NOT_DECIDED, NOT_COMPARED = Compared.NOT_DECIDED.value, Compared.NOT_COMPARED.value
TOO_FEW = f"{NOT_DECIDED}: fewer than {SMALLEST_N} on a side"
# By their trials; runs differ by more than these show.
DIFFERS = f"{NOT_DECIDED}: differs"
NO_TRIAL = "no trial of A or B counts"
TIMES_UNKNOWN = "the times of these loads are not known: a drift of the machine counts as change"
EMPTY = pd.Series(dtype=float)
CHANGE_COLUMNS = [
    "treatment", "response", "scale", "unit", "effect", "low", "high", "runs_a", "runs_b",
    "trials_a", "trials_b", "p_adjusted", "worse_by", "verdict",
]  # fmt: skip
NOTES = (
    "nothing pairs these loads: a drift between those of A and those of B counts as change",
    "whether services were started afresh between loads, and on which machine, is unknown",
)


@dataclass(frozen=True)
class RunComparison:
    """What changed from the runs of side A to those of side B.

    ``obstacles`` say why the runs are not comparable (empty: they are), ``notes`` say what else
    differs, and ``enough`` whether there are three runs a side. ``apart`` says that A and B do not
    alternate in time, or that their times are not known (empty: they alternate); nothing is better
    or worse then. ``table`` has a row per treatment and response: the ``effect`` with its 95%
    interval, ``worse_by`` (above 1: B is worse) and a verdict. The effect is the ratio B / A; where
    a value is 0 there is no ratio, and it is the difference B - A in the response's ``unit``
    (``scale`` says which), worse by infinity or 0. The verdict is better, worse or not decided;
    below three runs a side it is not decided, and may add that the sides differ by their trials. A
    row that is not compared has no numbers, and its verdict says why.
    """

    obstacles: tuple[str, ...]
    notes: tuple[str, ...]
    enough: bool
    table: pd.DataFrame
    apart: str = ""

    @property
    def not_compared(self) -> pd.DataFrame:
        """The rows of what could not be compared."""
        return self.table[self.table["verdict"].str.startswith(NOT_COMPARED)]

    def worse(self, factor: float) -> pd.DataFrame:
        """Return the rows whose verdict is worse, and whose whole interval is, by ``factor``."""
        table = self.table
        less_is_better = table["worse_by"] == table["effect"]
        least = table["low"].where(less_is_better, 1 / table["high"])
        least = least.where(table["scale"] == "ratio", table["worse_by"])
        return table[(table["verdict"] == WORSE) & (least >= factor)]


def compare_runs(a: Sequence[Run], b: Sequence[Run]) -> RunComparison:
    """Compare runs of two sides, response by response and treatment by treatment.

    The trials are those that may enter a comparison (:meth:`perflab.recordings.Run.trials_of`);
    imported ones are not judged, so all of them count. A response of which a trial has only a
    bound, or a run no value, is not compared, and its row says so. So does the one row of a
    treatment without any such trial.
    """
    imported = is_imported(a[0].record)
    enough = min(len(a), len(b)) >= ENOUGH_RUNS and not imported
    if reasons := obstacles(a, b):
        return RunComparison(reasons, (), enough, pd.DataFrame(columns=CHANGE_COLUMNS))
    rows: list[dict[str, Any] | None] = []
    for response in _compared([*a, *b]):
        trials = [[run.compared_trials(response.name) for run in side] for side in (a, b)]
        rows += [
            _row(
                treatment.name,
                response,
                *([_of_treatment(of_run, treatment.name) for of_run in side] for side in trials),
            )
            for treatment in a[0].record.treatments
        ]
    rows += _uncounted([*a, *b], {row["treatment"] for row in rows if row})
    apart = TIMES_UNKNOWN if imported else times_apart(*(map(middle_s, side) for side in (a, b)))
    table = judged_table(rows, _sides_differ if imported else partial(_differs, bool(apart)))
    doubtful = [f"doubtful, {run.run_id}: {why}" for run in (*a, *b) if (why := doubt(run))]
    told = [apart, *doubtful, *unequally_refused(a, b), *drifts(a, b), *sources(a, b)]
    notes = tuple(filter(None, told))
    if not enough:
        notes = (*notes, "intervals are of trials: what differs from run to run is not in them")
    return RunComparison((), notes, enough, table, apart)


def _uncounted(runs: Sequence[Run], compared: Collection[str]) -> list[dict[str, Any]]:
    """Return a row for every treatment that has no other, as none of its trials counts."""
    count = {str(name) for run in runs for name in run.compared_trials()["treatment"]}
    return [
        _row_without_numbers(treatment.name, "", "", (0, 0, 0, 0), NO_TRIAL)
        for treatment in runs[0].record.treatments
        if treatment.name not in {*compared, *count}
    ]


def _compared(runs: Sequence[Run]) -> list[Response]:
    """Return the typical responses that a run has, and for which more or less is better."""
    known = {name: item for run in runs for name, item in measured_responses(run).items()}
    return [response for response in known.values() if response.better != "neither"]


def judged_table(
    rows: Iterable[dict[str, Any] | None], differs: Callable[[dict[Any, Any]], str]
) -> pd.DataFrame:
    """Return a table of rows with adjusted p-values and verdicts.

    ``differs`` is the verdict of a row whose interval excludes no effect and whose p-value is 5% at
    most. Fewer than three trials on a side decide nothing. What a row has as verdict already is
    added to it, or stands alone where it says why nothing was compared.
    """
    table = pd.DataFrame([row for row in rows if row is not None], columns=CHANGE_COLUMNS)
    table["p_adjusted"] = benjamini_hochberg(table["p_adjusted"].tolist())
    no_effect = (table["scale"] == "ratio").astype(float)
    certain = (table["low"] > no_effect) | (table["high"] < no_effect)
    certain &= table["p_adjusted"] <= 1 - CONFIDENCE
    few = table[["trials_a", "trials_b"]].min(axis=1) < SMALLEST_N
    table["verdict"] = [
        row["verdict"]
        if row["verdict"].startswith(NOT_COMPARED)
        else (TOO_FEW if is_few else differs(row) if is_certain else NOT_DECIDED) + row["verdict"]
        for row, is_certain, is_few in zip(table.to_dict("records"), certain, few, strict=True)
    ]
    return table


def _row(
    name: str,
    response: Response,
    first: Sequence[pd.DataFrame],
    second: Sequence[pd.DataFrame],
) -> dict[str, Any] | None:
    """Return the row of a response from the trials of each run of both sides.

    None if no side has a value, or all are exactly 0.
    """
    a, b = ([_ends(trials, response.name) for trials in side] for side in (first, second))
    counts = (
        *(sum(of_run.size > 0 for of_run in side) for side in (a, b)),
        *(sum(of_run.shape[1] for of_run in side) for side in (a, b)),
    )
    unknown = _unknown(first, second, response.name)
    if unknown and (any(counts) or "bound" in unknown):
        why = f"{unknown}{_failed(first, second)}"
        return _row_without_numbers(name, response.name, response.unit, counts, why)
    if unknown or not any(of_run[[1, 3]].any() for of_run in (*a, *b)):
        return None
    is_ratio = all((of_run > 0).all() for of_run in (*a, *b))
    if is_ratio:
        a, b = ([np.log(of_run) for of_run in side] for side in (a, b))
    *numbers, p = compared_within(a, b)
    factor, unit = (1.0, response.unit) if is_ratio else unit_of_difference(response)
    effect, low, high = np.exp(numbers) if is_ratio else factor * np.asarray(numbers)
    worse_by = 1 / effect if response.better == "more" else effect
    if not is_ratio:
        worse_by = math.inf if (effect > 0) == (response.better == "less") else 0.0
    what = (name, response.name, "ratio" if is_ratio else "difference", unit)
    failed = _failed(first, second)
    values = (*what, effect, low, high, *counts, p, worse_by, failed)
    return dict(zip(CHANGE_COLUMNS, values, strict=True))


def _row_without_numbers(
    treatment: str, response: str, unit: str, counts: tuple[int, int, int, int], why: str
) -> dict[str, Any]:
    values = (treatment, response, "ratio", unit, *[math.nan] * 3, *counts, math.nan, math.nan)
    return dict(zip(CHANGE_COLUMNS, (*values, f"{NOT_COMPARED}: {why}"), strict=True))


def _unknown(first: Sequence[pd.DataFrame], second: Sequence[pd.DataFrame], response: str) -> str:
    """Return what keeps the runs of two sides from being compared; empty if nothing does."""
    told = []
    for name, side in (("A", first), ("B", second)):
        bounds = sum(int(run.get(at_least_column(response), EMPTY).count()) for run in side)
        without = sum(not run.get(response, EMPTY).count() for run in side)
        if bounds:
            verb = "has" if bounds == 1 else "have"
            told.append(f"{counted(bounds, 'trial')} of {name} {verb} only a bound")
        elif without == len(side):
            told.append(f"{name} has no value")
        elif without:
            verb = "has" if without == 1 else "have"
            told.append(f"{counted(without, 'run')} of {name} {verb} no value")
    return "; ".join(told)


def _ends(trials: pd.DataFrame, response: str) -> np.ndarray:
    """Return what is known of a response, shape (4, trials): lower end, value, upper end.

    A source's resolution lies between the ends, what of it may be the client's own, if that is more
    than a tenth, and what requests that a pause held up may add. The last row is the next value
    that the source can tell.
    """
    known = trials[trials[response].notna()] if response in trials else trials.head(0)
    value = known.get(response, EMPTY).to_numpy(float)
    nothing = pd.Series(0.0, index=known.index)
    step, client = (
        known.get(name(response), nothing).fillna(0.0).to_numpy(float)
        for name in (resolution_column, client_column)
    )
    is_much = np.abs(client) > MAX_CLIENT_SHARE * value
    less = np.where(is_much, without_client(value, client), value)
    most = known.get(at_most_column(response), nothing).fillna(-math.inf).to_numpy(float)
    least = known.get(lower_end_column(response), nothing + math.inf).fillna(math.inf)
    low, high = np.minimum.reduce([less, value, least]), np.maximum.reduce([less, value, most])
    return np.array([low - step / 2, value, high + step / 2, value + step])


def _failed(first: Sequence[pd.DataFrame], second: Sequence[pd.DataFrame]) -> str:
    """Return which requests of two imported sides failed, to follow a verdict; empty if none."""
    sides = [pd.concat(side) for side in (first, second)]
    if not (sides[0]["state"] == NOT_JUDGED).any():
        return ""
    words = [doubts(side) for side in sides]
    return "" if words == [NONE_FAILED] * 2 else f"; A: {words[0]}, B: {words[1]}"


def _of_treatment(trials: pd.DataFrame, treatment: str) -> pd.DataFrame:
    return trials[trials["treatment"] == treatment]


def compared_within(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> Shift:
    """Return B - A as :func:`compared` does, of values between two ends; see :func:`_ends`.

    The interval holds whatever lies between the ends, and p is 1 where no effect does.
    """
    least_spread = max(float((of_run[3] - of_run[1]).max()) for of_run in (*a, *b))
    (least, low, _, p_low), (middle, *_), (most, _, high, p_high) = (
        compared(
            [of_run[end_of_a] for of_run in a], [of_run[end_of_b] for of_run in b], least_spread
        )
        for end_of_a, end_of_b in ((2, 0), (1, 1), (0, 2))
    )
    p = 1.0 if least < 0 < most else float(np.maximum(p_low, p_high))
    return middle, low, high, p


def compared(a: Sequence[np.ndarray], b: Sequence[np.ndarray], least_spread: float = 0.0) -> Shift:
    """Return B - A, 95% low, 95% high and p-value of responses, or their logs, by run.

    From three runs a side on the unit is the run; below that it is the trial.
    """
    if min(len(a), len(b)) >= ENOUGH_RUNS:
        before, after = (np.array([values.mean() for values in side]) for side in (a, b))
        return wider_t(after, before, least_spread)
    return shift(np.concatenate(b), np.concatenate(a), least_spread)


def _differs(apart: bool, row: dict[Any, Any]) -> str:
    runs = row["runs_a"], row["runs_b"]
    if min(runs) >= ENOUGH_RUNS:
        if apart:
            return f"{NOT_DECIDED}: {AT_DIFFERENT_TIMES}"
        return WORSE if row["worse_by"] > 1 else BETTER
    if runs == (1, 1):
        return f"{DIFFERS} by trials, one run each"
    return f"{DIFFERS} by trials, {runs[0]} against {counted(runs[1], 'run')}"


def against_first(run: Run) -> pd.DataFrame:
    """Return every other treatment of an imported run against the first.

    The columns are those of the table of :class:`RunComparison`.
    """
    first, *others = [treatment.name for treatment in run.record.treatments]
    responses, trials = _compared([run]), run.compared_trials()
    tables = []
    for other in others:
        a, b = ([_of_treatment(trials, name)] for name in (first, other))
        rows = [_row(f"{other} / {first}", response, a, b) for response in responses]
        tables.append(judged_table(rows, _sides_differ))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=CHANGE_COLUMNS)


def _sides_differ(row: dict[Any, Any]) -> str:
    return f"{DIFFERS}, {row['trials_a']} against {counted(row['trials_b'], 'load')}"
