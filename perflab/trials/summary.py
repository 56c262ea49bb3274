"""The row of a trial, computed from its tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from perflab.load.result import LoadResult
from perflab.load.selfcheck import SelfCheck
from perflab.percentiles import OF_TRIALS, percentile, percentiles_of
from perflab.recordings.schema import PHASE_COLUMN


def load_columns(result: LoadResult) -> dict[str, Any]:
    """Return throughput and response times of the measured stage.

    For throughput see :attr:`LoadResult.throughput_rps`. Times are those of measured successes, in
    ms. Connection wait is from take-up to sending. Where there were streams, requests are what
    opened them (logins, say): then these columns are called ``request_...``, and nothing is said
    about the load by the names that others have.
    """
    measured = result.requests[result.requests["stage"] == "measure"]
    good = measured[measured["error"] == ""]
    response_ms = ((good["done_ns"] - good["planned_ns"]) / 1e6).to_numpy()
    service = good[good["sent_ns"] > 0]
    service_ms = ((service["done_ns"] - service["sent_ns"]) / 1e6).to_numpy()
    wait_ms = ((service["sent_ns"] - service["started_ns"]) / 1e6).to_numpy()
    values = {
        "throughput_rps": result.throughput_rps,
        "mean_ms": _mean(response_ms),
        **{f"p{share}_ms": ms for share, ms in percentiles_of(response_ms, OF_TRIALS).items()},
        "service_mean_ms": _mean(service_ms),
        "service_p99_ms": percentile(service_ms, 99),
        "connection_wait_p50_ms": percentile(wait_ms, 50),
        "connection_wait_p99_ms": percentile(wait_ms, 99),
    }
    of = "request_" if len(result.messages) else ""
    return {
        "begin_ns": result.begin_ns,
        "end_ns": result.end_ns,
        "requests": len(measured),
        "errors": len(measured) - len(good),
        **{f"{of}{name}": value for name, value in values.items()},
        "unsent": result.unsent,
        "capped": result.capped,
        "connections_opened": result.connections_opened,
        "stopped": result.stopped,
        "client_real_time": int(result.real_time),
    }


def phase_columns(requests: pd.DataFrame) -> dict[str, float]:
    """Return the median of every phase that services report, as ``phase_<name>_p50_ms``.

    Over the measured successes that report it; NaN where they are too few for a median. A phase
    may be a response like any other: what a service did inside, without the way to it.
    """
    good = requests[(requests["stage"] == "measure") & (requests["error"] == "")]
    return {
        f"{str(name).removesuffix('_ms')}_p50_ms": percentile(good[name].dropna().to_numpy(), 50)
        for name in requests.columns
        if PHASE_COLUMN.fullmatch(str(name))
    }


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def selfcheck_columns(check: SelfCheck, streamed: bool) -> dict[str, Any]:
    """Return what the generator found about itself; of streams, CPU is not told by request."""
    return {
        "run_delay_share": check.run_delay_share,
        "generator_lag_p50_ms": check.lag_p50_ms,
        "generator_lag_p99_ms": check.lag_p99_ms,
        "loop_delay_p99_ms": check.loop_delay_p99_ms,
        "loop_delay_max_ms": check.loop_delay_max_ms,
        "client_cpu_share": check.cpu_share,
        "client_cpu_us_per_request": math.nan if streamed else check.cpu_us_per_request,
        "littles_law_ratio": check.littles_law_ratio,
    }


def service_columns(
    samples: pd.DataFrame, services: Sequence[str], begin_ns: int, end_ns: int
) -> dict[str, Any]:
    """Return each service's CPU share (1.0 = one core) in the stage, and its largest memory."""
    row: dict[str, Any] = {}
    for name in services:
        own = samples[samples["service"] == name]
        inside = own[(own["t_ns"] >= begin_ns) & (own["t_ns"] <= end_ns)]
        row[f"cpu_share_{name}"] = cpu_share(own, begin_ns, end_ns)
        row[f"memory_{name}_bytes"] = int(inside["memory_bytes"].max()) if len(inside) else 0
    return row


def cpu_share(own: pd.DataFrame, begin_ns: int, end_ns: int) -> float:
    """Return CPU time over wall time between two instants, by interpolating cumulative time."""
    if len(own) < 2 or end_ns <= begin_ns:
        return float("nan")
    used = np.interp([begin_ns, end_ns], own["t_ns"].to_numpy(), own["cpu_ns"].to_numpy())
    return float((used[1] - used[0]) / (end_ns - begin_ns))


def flush_columns(flush_us: Sequence[float]) -> dict[str, Any]:
    """Return the measured flushes around the trial and their percentiles, in us."""
    if not flush_us:
        nothing = float("nan")
        return {"flush_us": [], "flush_p50_us": nothing, "flush_p99_us": nothing}
    return {
        "flush_us": [float(value) for value in flush_us],
        "flush_p50_us": float(np.percentile(flush_us, 50)),
        "flush_p99_us": float(np.percentile(flush_us, 99)),
    }


def identity_columns(
    trial_id: str, block: int, position: int, attempt: int, name: str, levels: Mapping[str, str]
) -> dict[str, Any]:
    """Return who the trial is."""
    return {
        "trial_id": trial_id,
        "block": block,
        "position": position,
        "attempt": attempt,
        "treatment": name,
        **{f"factor_{factor}": level for factor, level in levels.items()},
    }
