"""Throughput and times of the requests that a load measured, and of the phases they report."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from perflab.instruments.instrument import Instrument, Load, Look, Observation, Scene
from perflab.load.result import LoadResult
from perflab.percentiles import OF_TRIALS, percentile, percentiles_of
from perflab.recordings.columns import PHASE_COLUMN


class Requests(Instrument):
    """Sums up the requests of a trial.

    With a ``prefix`` its columns are called by it: where requests only open what is measured, they
    shall not pass for it. Phases have names of their own.
    """

    prefix: str = ""

    def look(self, scene: Scene) -> Look:  # noqa: ARG002
        """Return the look at one trial."""
        return _Requests(self.prefix)


class _Requests(Look):
    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def observe(self, load: Load) -> Observation:
        """Return columns alone."""
        columns = request_columns(load.result)
        named = {f"{self._prefix}{name}": value for name, value in columns.items()}
        return Observation({**named, **phase_columns(load.result.requests)})


def request_columns(result: LoadResult) -> dict[str, Any]:
    """Return throughput and response times of the measured stage, and what a request costs.

    For throughput see :attr:`LoadResult.throughput_rps`. Times are those of measured successes, in
    ms. Connection wait is from take-up to sending.
    """
    measured = result.requests[result.requests["stage"] == "measure"]
    good = measured[measured["error"] == ""]
    response_ms = ((good["done_ns"] - good["planned_ns"]) / 1e6).to_numpy()
    service = good[good["sent_ns"] > 0]
    service_ms = ((service["done_ns"] - service["sent_ns"]) / 1e6).to_numpy()
    wait_ms = ((service["sent_ns"] - service["started_ns"]) / 1e6).to_numpy()
    return {
        "throughput_rps": result.throughput_rps,
        "mean_ms": _mean(response_ms),
        **{f"p{share}_ms": ms for share, ms in percentiles_of(response_ms, OF_TRIALS).items()},
        "service_mean_ms": _mean(service_ms),
        "service_p99_ms": percentile(service_ms, 99),
        "connection_wait_p50_ms": percentile(wait_ms, 50),
        "connection_wait_p99_ms": percentile(wait_ms, 99),
        "client_cpu_us_per_request": result.cpu_ns / 1e3 / max(1, len(measured)),
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
