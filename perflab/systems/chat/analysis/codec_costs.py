"""Codecs: time and bytes per message, and how many operations the published totals stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from perflab.errors import AnalysisError
from perflab.recordings import Run, published, published_value
from perflab.statistics.in_words import counted
from perflab.statistics.quantiles import Estimate, across_trials

FACTORS = ("codec", "operation", "message")
# The service reports the time of a thousand operations in ms, which is that of one in us.
RESPONSE = "phase_op_p50_ms"
COST = [*FACTORS, "bytes", "us", "low", "high", "n"]
LOOPS = ["codec", "step", "published_ms", "us", "us_low", "us_high", "loops", "low", "high", "n"]


def is_of_codecs(run: Run) -> bool:
    """Return whether the run varies codec, operation and message."""
    return set(FACTORS) <= set(run.record.factors)


def cost_table(run: Run) -> pd.DataFrame:
    """Return one row per treatment: codec, operation, message, bytes, us per operation.

    ``us`` is the typical value over the valid trials (each trial's is the median of its requests)
    with its 95% interval ``low`` to ``high`` (NaN where n is too small); empty for other runs.
    """
    if not is_of_codecs(run):
        return pd.DataFrame(columns=COST)
    trials = run.valid_trials()
    rows = []
    for treatment in run.record.treatments:
        levels, us = treatment.levels, across_trials(_times_us(trials, treatment.name))
        named = [levels[name] for name in FACTORS]
        rows.append([*named, int(levels["bytes"]), us.value, us.low, us.high, us.n])
    return pd.DataFrame(rows, columns=COST)


def implied_loops(run: Run) -> pd.DataFrame:
    """Return how many operations each published total stands for at the speed of this machine.

    One row per codec and step that were published and measured: published_ms, us per operation
    here and ``loops``, the typical ratio of the two over the trials, each with its 95% interval;
    n counts trials.
    """
    rows = []
    for codec, step, total_ms, trials_us in _published_and_measured(run):
        us, loops = across_trials(trials_us), across_trials(total_ms * 1e3 / trials_us)
        ends = [us.value, us.low, us.high, loops.value, loops.low, loops.high]
        rows.append([codec, step, total_ms, *ends, loops.n])
    return pd.DataFrame(rows, columns=LOOPS)


def loops_together(run: Run) -> Estimate:
    """Return the loop count that all published totals imply together, with its 95% interval.

    In every block the geometric mean over codecs and steps; then over the blocks.

    Raises
    ------
    AnalysisError
        No block has a valid trial of each.
    """
    logs = [
        np.log(total_ms * 1e3 / trials_us)
        for _, _, total_ms, trials_us in _published_and_measured(run)
    ]
    together = pd.concat(logs, axis=1).dropna() if logs else pd.DataFrame()
    if together.empty:
        raise AnalysisError("no block has a valid trial of every published codec and step")
    return across_trials(np.exp(together.mean(axis=1)))


def loops_sentence(run: Run) -> str:
    """Return in words what loop count the published totals imply, written from the data."""
    try:
        found = loops_together(run)
    except AnalysisError as error:
        return f"How many operations the published totals stand for cannot be said: {error}."
    stated = published_value("chat", "microbenchmark", "all", "loops")
    single = implied_loops(run)["loops"]
    interval = f" [{found.low:,.0f}, {found.high:,.0f}]" if found.supported else " (no interval)"
    # The quotient says how much faster than this machine theirs would have to be.
    return (
        f"At the speed of this machine the published totals stand for {found.value:,.0f}{interval} "
        f"operations (95% interval, {counted(found.n, 'block')}; single codecs and steps from "
        f"{single.min():,.0f} to {single.max():,.0f}). The study states {stated:,.0f}: for those, "
        f"its machine would have to be {stated / found.value:.2g} times as fast as this one."
    )


def _published_and_measured(run: Run) -> list[tuple[str, str, float, pd.Series[Any]]]:
    """Return codec, step, published total in ms, and us per operation here by block."""
    table = published("chat")
    table = table[table["place"] == "microbenchmark"]
    totals_ms = {
        (str(row["scenario"]).partition(" ")[0], row["measure"]): float(row["value"])
        for row in table.to_dict("records")
    }
    trials = run.valid_trials()
    rows = []
    for treatment in run.record.treatments:
        codec, step = (treatment.levels.get(name, "") for name in ("codec", "operation"))
        total_ms = totals_ms.get((codec, f"{step}_time"))
        if total_ms is None or treatment.levels["message"] != "published":
            continue
        times_us = _times_us(trials, treatment.name)
        if len(times_us):
            rows.append((codec, step, total_ms, times_us))
    return rows


def _times_us(trials: pd.DataFrame, treatment: str) -> pd.Series[Any]:
    own = trials[trials["treatment"] == treatment].set_index("block")
    return own.reindex(columns=[RESPONSE])[RESPONSE].dropna().astype(float)
