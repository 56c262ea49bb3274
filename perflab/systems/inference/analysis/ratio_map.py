"""Where published ratios would appear: measured ratios over the flush cost that commits felt.

The lab can plant a pause before each flush (``commit_delay``), but a commit does not feel exactly
that pause: one pause serves all commits that arrive in it, and a commit that arrives during a flush
waits for that flush and then for its own. So the map uses the felt cost: the median commit phase
with commit on, less that with commit off in the same block, at the same workers and distance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from perflab.analysis.evaluation import evaluate
from perflab.recordings import Contrast, Run
from perflab.statistics.comparison import effect_of
from perflab.systems.inference.published_load import published_rps

FACTORS = ("commit_delay_us", "workers", "round_trip_ms")
PHASE = "phase_commit_p50_ms"
FLUSH, DRIVER = "off against on", "async against sync"
ROWS = {
    FLUSH: ("ONNX + DB, synchronous_commit=off", "ONNX + DB, synchronous_commit=on"),
    DRIVER: (
        "async driver (asyncpg), 4 workers, pool 50",
        "sync driver (psycopg2), 4 workers, pool 50",
    ),
}
INSIDE, OUTSIDE, NO_INTERVAL = "in the interval", "outside", "no interval"
# An interval that also holds "no effect" shows nothing.
WITH_NO_EFFECT = "in the interval, and so is no effect"
COLUMNS = [
    "ratio_of", "workers", "round_trip_ms", "set_ms", "felt_ms", "felt_low", "felt_high", "ratio",
    "low", "high", "n", "published", "published_is",
]  # fmt: skip


def is_flush_map(run: Run) -> bool:
    """Return whether a run has the factors of the map."""
    return set(FACTORS) <= set(run.record.factors)


def flush_map(run: Run) -> pd.DataFrame:
    """Return every cell of the map, for both ratios.

    Columns: ratio_of ("off against on" or "async against sync", of throughput), workers,
    round_trip_ms, set_ms (the pause planted before a flush), felt_ms with its 95% interval (the
    time that a commit felt of flush and pause), ratio with its 95% interval, n (blocks), published,
    and published_is (whether the published ratio lies in the interval).
    """
    felt: dict[tuple[str, ...], dict[str, float]] = {}
    rows = []
    for finding in evaluate(run):
        contrast = finding.contrast
        cell = _cell(contrast)
        key = tuple(cell[name] for name in FACTORS)
        if key not in felt:
            felt[key] = felt_flush(run, cell)
        effect = finding.effect
        ratio_of = DRIVER if contrast.name.startswith(DRIVER) else FLUSH
        published = _published(ratio_of)
        low, high = (effect.low, effect.high) if effect else (math.nan, math.nan)
        rows.append(
            {
                "ratio_of": ratio_of,
                "workers": int(cell["workers"]),
                "round_trip_ms": float(cell["round_trip_ms"]),
                "set_ms": int(cell["commit_delay_us"]) / 1000,
                **felt[key],
                "ratio": effect.estimate if effect else math.nan,
                "low": low,
                "high": high,
                "n": effect.n if effect else 0,
                "published": published,
                "published_is": _where(published, low, high),
            }
        )
    return pd.DataFrame(rows, columns=COLUMNS)


def _cell(contrast: Contrast) -> dict[str, str]:
    """Return the cell of a contrast, which its denominator (commit on, psycopg2) defines."""
    return {name: contrast.denominator[name] for name in FACTORS}


def _published(ratio_of: str) -> float:
    """Return the published ratio, which is the same for every cell."""
    above, below = ROWS[ratio_of]
    return published_rps(above) / published_rps(below)


def _where(published: float, low: float, high: float) -> str:
    if not (math.isfinite(low) and math.isfinite(high)):
        return NO_INTERVAL
    if not low <= published <= high:
        return OUTSIDE
    return WITH_NO_EFFECT if low <= 1 <= high else INSIDE


def felt_flush(run: Run, cell: Mapping[str, str]) -> dict[str, float]:
    """Return the time that a commit of psycopg2 felt of flush and pause, in ms, over blocks."""
    place = {name: cell[name] for name in FACTORS if name != "commit_delay_us"}
    delay = {"commit_delay_us": cell["commit_delay_us"]}
    driver = {"driver": "psycopg2"}
    on = _by_block(run, {**driver, **place, **delay, "synchronous_commit": "on"})
    off = _by_block(run, {**driver, **place, "synchronous_commit": "off"})
    added = on - off
    if not added.notna().any():
        return dict.fromkeys(("felt_ms", "felt_low", "felt_high"), math.nan)
    effect = effect_of(added, scale="difference", rule=run.record.until_decided)
    return {"felt_ms": effect.estimate, "felt_low": effect.low, "felt_high": effect.high}


def _by_block(run: Run, levels: Mapping[str, str]) -> pd.Series[float]:
    trials = run.valid_trials()
    rows = trials[trials["treatment"].isin(run.record.selected(dict(levels)))]
    blocks = pd.RangeIndex(run.judged_blocks)
    if PHASE not in rows:
        return pd.Series(math.nan, index=blocks)
    return rows.set_index("block")[PHASE].astype(float).reindex(blocks)
