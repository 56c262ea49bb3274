"""Throughput and times of the requests that a load measured, and of the phases they report."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from perflab.instruments.instrument import Instrument, Load, Look, Observation, Scene
from perflab.load.result import LoadResult
from perflab.load.times import Number, times_of
from perflab.load.trend import Trend, response_trend
from perflab.percentiles import CENSORED, OF_TRIALS, bounds_of
from perflab.recordings.columns import PHASE_COLUMN
from perflab.recordings.reasons import Reason
from perflab.recordings.responses import at_least_column
from perflab.recordings.steadiness import OF_LOAD, TREND


class Requests(Instrument):
    """Sums up the requests of a trial.

    With a ``prefix`` its columns are called by it: where requests only open what is measured, they
    shall not pass for it. Phases have names of their own. How response times change over the load
    is kept (``response_log_trend``) and judged over the treatment's blocks
    (:mod:`perflab.recordings.steadiness`); a trial of gross change is not used in any case, and
    none of its numbers: in a closed loop throughput and CPU follow the response times. ``steady``
    False takes them as they are: of a load that is to rise. ``phases`` False leaves out what
    services report of themselves: of requests that are not those in question.
    """

    shares_time: ClassVar = True

    prefix: str = ""
    steady: bool = True
    phases: bool = True

    def look(self, scene: Scene) -> Look:  # noqa: ARG002
        """Return the look at one trial."""
        return _Requests(self)


class _Requests(Look):
    def __init__(self, asked: Requests) -> None:
        self._asked = asked

    def observe(self, load: Load) -> Observation:
        """Return columns alone."""
        columns = request_columns(load.result)
        named = {f"{self._asked.prefix}{name}": value for name, value in columns.items()}
        if self._asked.phases:
            named |= phase_columns(load.result.requests)
        if not self._asked.steady:
            return Observation(named)
        trend = response_trend(load.result)
        return Observation({**named, TREND: trend.log}, reasons=unsteady(trend))


def unsteady(trend: Trend) -> list[Reason]:
    """Return why a trial has no numbers of its own, whatever those of other blocks did."""
    if not trend.gross:
        return []
    return [Reason(code=OF_LOAD, text=f"the load was not steady: {trend}")]


def request_columns(result: LoadResult) -> dict[str, Any]:
    """Return throughput and response times of the measured stage, and what a request costs.

    For throughput see :attr:`LoadResult.throughput_rps`. Times are those of measured successes, in
    ms; NaN where requests that were cut off could move them (``_at_least_ms`` then says what they
    are at least), or where more than a tenth may be the client's own time (``_client_ms`` says how
    much). Connection wait is from take-up to sending.
    """
    response = times_of(result).numbers(OF_TRIALS)
    service = times_of(result, "sent_ns").numbers(OF_TRIALS)
    wait = times_of(result, "started_ns", "sent_ns").numbers(OF_TRIALS)
    given = ("mean", *(f"p{share}" for share in OF_TRIALS), "max")
    bounds = {f"{name}_ms": response[name] for name in given}
    bounds |= {f"service_{name}_ms": service[name] for name in ("mean", "p99")}
    return {
        "throughput_rps": result.throughput_rps,
        **{f"{name}_ms": response[name].comparable for name in given},
        **at_least(bounds),
        **{f"{name}_client_ms": response[name].client_ms for name in given},
        "service_mean_ms": service["mean"].comparable,
        "service_p99_ms": service["p99"].comparable,
        "connection_wait_p50_ms": wait["p50"].value,
        "connection_wait_p99_ms": wait["p99"].value,
        "client_cpu_us_per_request": result.cpu_ns / 1e3 / max(1, result.requests_counted),
    }


def at_least(numbers: Mapping[str, Number]) -> dict[str, float]:
    """Return what times are at least that requests which were cut off could move."""
    return {
        at_least_column(name): each.at_least
        for name, each in numbers.items()
        if not (math.isnan(each.at_least) or each.is_the_clients)
    }


def phase_columns(requests: pd.DataFrame) -> dict[str, float]:
    """Return the median of every phase that services report, as ``phase_<name>_p50_ms``.

    Over the measured successes that report it; NaN where they are too few for a median, or where
    requests that were cut off, whose phases nobody knows, could move it. A phase may be a response
    like any other: what a service did inside, without the way to it.
    """
    measured = requests[requests["stage"] == "measure"]
    good = measured[measured["error"] == ""]
    unknown = np.zeros(int(measured["error"].isin(CENSORED).sum()))
    return {
        f"{str(name).removesuffix('_ms')}_p50_ms": bounds_of(
            good[name].dropna().to_numpy(float), unknown, (50,)
        )[50].value
        for name in requests.columns
        if PHASE_COLUMN.fullmatch(str(name))
    }
