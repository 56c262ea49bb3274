"""Where a figure comes from: in small print below the plot, and as data inside the file."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd

from perflab.analysis.noise import doubt
from perflab.analysis.typical_values import typical_value
from perflab.figures.theme import Style, styles_of
from perflab.recordings import Run
from perflab.recordings.responses import at_least_column
from perflab.recordings.sharing import shared_parameters, without_paths
from perflab.statistics.in_words import number
from perflab.statistics.quantiles import Estimate

TRIAL = "trial"
# Below 6 trials a median has no 95% interval, but the geometric mean has a t interval.
MEDIAN, GEOMETRIC_MEAN = "median", "geometric mean"
TYPICAL = (MEDIAN, GEOMETRIC_MEAN)
TRIALS_AND_TYPICAL = ["panel", "what", "treatment", "state", "value", "low", "high", "n"]


def footer(run: Run) -> str:
    """Return the small print below every figure: run, path, n, seed, commit, and what is shared."""
    record = run.record
    lines = [
        f"run {run.run_id} · seed {record.seed} · commit {record.commit}"
        f" · perflab {version('perflab')}",
        f"backend {record.backend} · network path {record.network_path}",
        run.n_text(),
    ]
    if record.state != "finished":
        lines.append(f"run {record.state_text}" + (f": {record.reason}" if record.reason else ""))
    if note := record.shared_cores:
        lines.append(f"not separated on this machine: {note}")
    if why := doubt(run):
        lines.append(f"DOUBTFUL: {why}")
    return without_paths(record, "\n".join(lines))


def origin_of(run: Run) -> dict[str, Any]:
    """Return the origin of the saved figures of a run, in plain JSON values."""
    record, code = run.record, run.record.code
    return {
        "runs": [run.run_id],
        "experiment": record.experiment,
        "parameters": shared_parameters(record),
        "backend": record.backend,
        "network_path": record.network_path,
        "commit": str(code.get("commit") or "unknown"),
        "dirty": bool(code.get("dirty")),
        "n": run.valid_counts(),
        "seed": record.seed,
        "perflab": version("perflab"),
    }


@dataclass(frozen=True)
class Page:
    """All that a drawing may know of a run beside its table: the record, and counts of trials.

    ``question`` is the run's. ``title`` and ``origin`` go into the files' metadata, and ``footer``
    is the small print. ``styles`` are the treatments' colours, markers and labels;
    compared treatments are side by side. ``pairs`` are the treatments that claims compare.
    ``nothing`` is a sentence that says why there is nothing to draw.
    """

    question: str
    title: str
    footer: str
    origin: Mapping[str, Any]
    styles: Mapping[str, Style]
    pairs: tuple[tuple[str, str], ...]
    nothing: str


def page_of(run: Run) -> Page:
    """Return the page of a run."""
    return Page(
        question=run.record.question,
        title=run.record.title,
        footer=footer(run),
        origin=origin_of(run),
        styles=styles_of(run.record),
        pairs=tuple(run.record.compared_pairs()),
        nothing=without_paths(run.record, _why_nothing(run)),
    )


def _why_nothing(run: Run) -> str:
    if not len(run.trials()):
        because = f" ({run.record.reason})" if run.record.reason else ""
        return f"The run has no trial: it is {run.record.state_text}{because}."
    trials = run.current_trials()
    states = trials["state"].value_counts()
    if not states.get("valid", 0):
        counts = " and ".join(f"{n} {state}" for state, n in states.items()) or "all superseded"
        reasons = [str(reason) for of_trial in trials["reasons"] for reason in of_trial]
        because = f": {reasons[0]}" if reasons else ""
        return f"No trial of the run is valid ({counts}{because})."
    if run.missing:
        return f"This recording lacks the rows of {' and '.join(run.missing)}."
    return "The valid trials of the run hold nothing that this figure shows."


def typical_rows(run: Run, response: str) -> pd.DataFrame:
    """Return the typical value of a response over the valid trials, a row per treatment.

    Columns: treatment, what (the statistic), value, low, high (95%, NaN if n is too small), n
    (trials). Treatments without a value have no row, also where a trial has only a bound.
    """
    valid = run.valid_trials()
    groups = valid.groupby("treatment", sort=False) if response in valid else ()
    rows = [
        {"treatment": str(name), **estimate_row(typical_value(trials, response))}
        for name, trials in groups
    ]
    table = pd.DataFrame(rows, columns=["treatment", "what", "value", "low", "high", "n"])
    return table[np.isfinite(table["value"].astype(float))]


def estimate_row(estimate: Estimate) -> dict[str, Any]:
    """Return an estimate as columns of :func:`typical_rows`."""
    return {
        "what": GEOMETRIC_MEAN if estimate.method == "t on logs" else MEDIAN,
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "n": estimate.n,
    }


def in_words(
    typical: Mapping[Hashable, Any], unit: str = "", form: Callable[[float], str] = number
) -> str:
    """Return three lines: value, interval (or that there is none), n; two for one trial."""
    value, low, high = (form(typical[name]) for name in ("value", "low", "high"))
    if typical["n"] == 1:
        return f"{value} {unit}".strip() + "\none trial"
    interval = f"[{low}, {high}]" if math.isfinite(typical["low"]) else "no interval"
    return f"{value} {unit}".strip() + f"\n{interval}\nn = {typical['n']:g}"


def trials_shown(run: Run) -> pd.DataFrame:
    """Return the trials that figures show: those neither superseded nor failed."""
    trials = run.current_trials()
    return trials[trials["state"] != "failed"]


def bounded(trials: pd.DataFrame, column: str, whats: tuple[str, str]) -> pd.DataFrame:
    """Return the values of a column of trials, or their lower bounds, and in ``what`` which."""
    missing = pd.Series(np.nan, index=trials.index)
    values = trials.get(column, missing).astype(float)
    at_least = trials.get(at_least_column(column), missing).astype(float)
    what = np.where(values.isna() & at_least.notna(), whats[1], whats[0])
    return trials[["treatment", "state"]].assign(what=what, value=values.fillna(at_least))


def trials_and_typical(run: Run, panels: Mapping[str, tuple[str, float]]) -> pd.DataFrame:
    """Return the value of every trial, and the typical values of treatments, by response.

    ``panels`` gives the panel of each response, and what its values are divided by. Columns: panel;
    what ("trial", or the statistic); treatment; state, of a trial; value; low, high and n, as
    :func:`typical_rows` has them. Failed trials, and those without a value, have no row.
    """
    trials = trials_shown(run)
    parts: list[pd.DataFrame] = []
    for response, (panel, divisor) in panels.items():
        values = trials.reindex(columns=[response])[response]
        points = trials[["treatment", "state"]].assign(what=TRIAL, value=values)
        for part in (points.dropna(subset=["value"]), typical_rows(run, response)):
            parts.append(part.assign(panel=panel, divisor=divisor))
    shown = [part for part in parts if len(part)]
    if not shown:
        return pd.DataFrame(columns=TRIALS_AND_TYPICAL)
    table = pd.concat(shown, ignore_index=True)
    numbers = ["value", "low", "high"]
    scaled = table.reindex(columns=numbers).astype(float).div(table["divisor"], axis="index")
    table = table.reindex(columns=TRIALS_AND_TYPICAL)
    table[numbers] = scaled
    return table
