"""A run in one table: what each treatment did, over its valid trials."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from perflab.analysis.quantiles import across_trials
from perflab.recordings import Run
from perflab.systems.chat.analysis.windows import has_streams

RESPONSES = ("throughput_rps", "mean_ms", "p50_ms", "p95_ms", "p99_ms")
# Of runs that measured deliveries of messages; their few requests are logins.
STREAM_RESPONSES = (
    "messages_per_s", "delivery_p50_ms", "delivery_p90_ms", "delivery_p95_ms", "delivery_p99_ms",
    "ping_p50_ms", "ping_p90_ms", "cpu_us_per_message",
)  # fmt: skip


def summary_table(run: Run) -> pd.DataFrame:
    """Return one row per treatment, in the order of the record.

    Columns: treatment, label; valid, invalid, failed (numbers of trials that were not
    superseded); requests, errors (sums over valid trials); for every response in ``RESPONSES``
    (``STREAM_RESPONSES`` where deliveries were measured)
    its typical value over valid trials with ``_low``, ``_high`` (95%, NaN where n is too small)
    and ``_n`` (trials that have it); the same of ``cpu_share_<service>`` (1.0 = one core; of the
    plateau where deliveries were measured);
    ``flush_p50_us_min`` and ``_max`` (range of the trials' median flushes).
    """
    trials = run.trials()
    trials = trials[~trials["superseded"]]
    responses = STREAM_RESPONSES if has_streams(run) else RESPONSES
    # Trials of streams begin with minutes of joining: the share that counts is the plateau's.
    start = "plateau_cpu_share_" if has_streams(run) else "cpu_share_"
    shares = [str(name) for name in trials.columns if str(name).startswith(start)]
    rows = []
    for treatment in run.record.treatments:
        own = trials[trials["treatment"] == treatment.name]
        valid = own[own["state"] == "valid"]
        rows.append(
            {
                "treatment": treatment.name,
                "label": treatment.label or treatment.name,
                **{
                    state: int((own["state"] == state).sum())
                    for state in ("valid", "invalid", "failed")
                },
                "requests": int(valid["requests"].sum()),
                "errors": int(valid["errors"].sum()),
                **_responses(valid, {name: name for name in responses}),
                **_responses(valid, {name: name.removeprefix("plateau_") for name in shares}),
                **_flush_range(valid),
            }
        )
    return pd.DataFrame(rows)


def _responses(valid: pd.DataFrame, titles: dict[str, str]) -> dict[str, Any]:
    """Return typical values of the trials' columns, each with interval and n, by their titles."""
    row: dict[str, Any] = {}
    for name, title in titles.items():
        found = across_trials(valid[name].to_numpy(float))
        row |= {
            title: found.value,
            f"{title}_low": found.low,
            f"{title}_high": found.high,
            f"{title}_n": found.n,
        }
    return row


def _flush_range(valid: pd.DataFrame) -> dict[str, float]:
    flush = valid["flush_p50_us"].dropna()
    low, high = (float(flush.min()), float(flush.max())) if len(flush) else (math.nan, math.nan)
    return {"flush_p50_us_min": low, "flush_p50_us_max": high}
