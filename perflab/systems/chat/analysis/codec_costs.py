"""Codecs: time and bytes per message, and how many operations the published totals stand for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from perflab.analysis.methods.quantiles import Estimate, across_trials
from perflab.errors import AnalysisError
from perflab.numerals import counted
from perflab.recordings import Run, published, published_value

FACTORS = ("codec", "operation", "message")
# The service reports the time of a thousand operations in ms, which is that of one in us.
RESPONSE = "phase_op_p50_ms"
COST = [*FACTORS, "bytes", "us", "low", "high", "n"]
LOOPS = ["codec", "step", "published_ms", "us", "us_low", "us_high", "loops", "low", "high", "n"]
PUBLISHED_STEPS = ("serialize", "deserialize")


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
        found = across_trials(_times_us(trials, treatment.name))
        rows.append(
            {
                **{name: treatment.levels[name] for name in FACTORS},
                "bytes": int(treatment.levels["bytes"]),
                "us": found.value,
                "low": found.low,
                "high": found.high,
                "n": found.n,
            }
        )
    return pd.DataFrame(rows, columns=COST)


def implied_loops(run: Run) -> pd.DataFrame:
    """Return how many operations each published total stands for at the speed of this machine.

    One row per codec and step that were published and measured: published_ms, us per operation
    here and ``loops``, the typical ratio of the two over the trials, each with its 95% interval;
    n counts trials.
    """
    rows = []
    for codec, step, total_ms, trials_us in _published_and_measured(run):
        here, loops = across_trials(trials_us), across_trials(total_ms * 1e3 / trials_us)
        rows.append(
            {
                "codec": codec,
                "step": step,
                "published_ms": total_ms,
                "us": here.value,
                "us_low": here.low,
                "us_high": here.high,
                "loops": loops.value,
                "low": loops.low,
                "high": loops.high,
                "n": loops.n,
            }
        )
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
    if not logs:
        raise AnalysisError("the run measured nothing that was published")
    together = pd.concat(logs, axis=1).dropna()
    if together.empty:
        raise AnalysisError("no block has a valid trial of every published codec and step")
    return across_trials(np.exp(together.mean(axis=1)))


def loops_sentence(run: Run) -> str:
    """Return in words what loop count the published totals imply, written from the data."""
    try:
        found = loops_together(run)
    except AnalysisError as error:
        return f"How many operations the published totals stand for cannot be said: {error}."
    stated, table = _stated_loops(), implied_loops(run)
    # The quotient of the two says how much faster than this machine theirs would have to be.
    faster = stated / found.value
    interval = f" [{found.low:,.0f}, {found.high:,.0f}]" if found.supported else " (no interval)"
    return (
        f"At the speed of this machine the published totals stand for {found.value:,.0f}{interval} "
        f"operations (95% interval, {counted(found.n, 'block')}; single codecs and steps from "
        f"{table['loops'].min():,.0f} to {table['loops'].max():,.0f}). "
        f"{_agreement(found, stated)}: for those, theirs would have to be {faster:.2g} times as "
        "fast as this machine."
    )


def _agreement(found: Estimate, stated: float) -> str:
    """Say whether the interval, taken to powers of ten, holds the stated count and no other."""
    if not found.supported:
        return f"Without an interval nothing can be said of the stated {stated:,.0f}"
    least, most = (10 ** round(math.log10(end)) for end in (found.low, found.high))
    nearest = f"the nearest power of ten is {least:,.0f}"
    if least != most:
        nearest = f"the nearest powers of ten are {least:,.0f} to {most:,.0f}"
    if not least <= stated <= most:
        return f"That does not agree with the stated {stated:,.0f} ({nearest})"
    if least == most:
        return f"That agrees with the stated {stated:,.0f} ({nearest})"
    return f"Whether that agrees with the stated {stated:,.0f} is open ({nearest})"


def _published_and_measured(run: Run) -> list[tuple[str, str, float, pd.Series[Any]]]:
    """Return codec, step, published total in ms, and us per operation here by block."""
    table = published("chat")
    table = table[table["place"] == "microbenchmark"]
    trials = run.valid_trials()
    found = []
    for treatment in run.record.treatments:
        levels = treatment.levels
        if levels.get("message") != "published" or levels.get("operation") not in PUBLISHED_STEPS:
            continue
        codec, step = levels["codec"], levels["operation"]
        total = table[
            (table["scenario"].str.partition(" ")[0] == codec)
            & (table["measure"] == f"{step}_time")
        ]["value"]
        times_us = _times_us(trials, treatment.name)
        if len(total) and len(times_us):
            found.append((codec, step, float(total.iloc[0]), times_us))
    return found


def _times_us(trials: pd.DataFrame, treatment: str) -> pd.Series[Any]:
    own = trials[trials["treatment"] == treatment].set_index("block")
    return own.reindex(columns=[RESPONSE])[RESPONSE].dropna().astype(float)


def _stated_loops() -> float:
    return published_value("chat", "microbenchmark", "all", "loops")
