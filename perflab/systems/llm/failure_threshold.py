"""What a run that stops at a number of failures would have told, read off a run that goes on.

A load tool that stops "as if interrupted" breaks off what is under way. Whether it counts that as
failed decides what its failure rate says: with a long answer most requests are under way when
users still join.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import pandas as pd
from pydantic import Field

from perflab.instruments import Instrument, Load, Look, Observation, Scene
from perflab.load.completeness import CUT_OFF
from perflab.load.workload import ClosedLoop, Workload
from perflab.recordings.responses import at_least_column
from perflab.stacks.plan import StackPlan

USERS = "users_at_failure"


class FailureThreshold(Instrument):
    """Sums up a load of ever more users up to its n-th failure.

    ``users_at_failure`` are those who had sent something by then (with fewer failures a bound: at
    least all of them). ``stop_requests`` are the requests begun by then, of which
    ``stop_successes`` and ``stop_failures`` were over, and ``stop_in_flight`` under way: what a
    stop breaks off. ``stop_failure_share`` counts these as failed, over all begun.
    ``failures_after`` failed later, those of them that were under way among them.
    """

    failures: int = Field(ge=1)

    def look(self, scene: Scene) -> Look:  # noqa: ARG002
        """Return the look at one trial."""
        return _FailureThreshold(self.failures)

    def obstacles(self, stack: StackPlan, workload: Workload) -> Iterable[str]:  # noqa: ARG002
        """Return that users do not join one after the other."""
        arrivals = workload.arrivals
        if not (isinstance(arrivals, ClosedLoop) and (arrivals.stages or arrivals.ramp_s)):
            yield "failure threshold: users must join one after the other (stages or ramp_s)"


class _FailureThreshold(Look):
    def __init__(self, failures: int) -> None:
        self._failures = failures

    def observe(self, load: Load) -> Observation:
        """Return columns alone."""
        return Observation(threshold_columns(load.result.requests, self._failures))


def threshold_columns(requests: pd.DataFrame, failures: int) -> dict[str, float]:
    """Return what was known at the n-th failure; NaN, and a bound, where fewer failed.

    Parameters
    ----------
    requests : DataFrame
        All of a load, as recorded.
    failures : int
        The failure at which it would have stopped.
    """
    failed = (requests["error"] != "") & ~requests["error"].isin(CUT_OFF)
    ends_ns = requests.loc[failed, "done_ns"].sort_values()
    everyone = float(requests["user"].nunique())
    if len(ends_ns) < failures:
        unknown = dict.fromkeys((USERS, *STOPPED), math.nan)
        return {**unknown, at_least_column(USERS): everyone}
    at_ns = int(ends_ns.iloc[failures - 1])
    begun = requests[(requests["started_ns"] > 0) & (requests["started_ns"] <= at_ns)]
    is_over = begun["done_ns"].between(1, at_ns)
    succeeded = int((is_over & (begun["error"] == "")).sum())
    over_failed = int((is_over & failed[begun.index]).sum())
    under_way = len(begun) - succeeded - over_failed
    return {
        USERS: float(begun["user"].nunique()),
        "stop_requests": float(len(begun)),
        "stop_successes": float(succeeded),
        "stop_failures": float(over_failed),
        "stop_in_flight": float(under_way),
        "stop_failure_share": (over_failed + under_way) / len(begun),
        "failures_after": float(failed.sum() - over_failed),
    }


STOPPED = (
    "stop_requests",
    "stop_successes",
    "stop_failures",
    "stop_in_flight",
    "stop_failure_share",
    "failures_after",
)
