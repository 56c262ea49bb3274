"""What a stop at a number of failures breaks off, and what it does to a failure rate.

Whether a load tool counts as failed what its stop breaks off decides what its failure rate says:
while users still join, and answers are long, many of all requests are under way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import pandas as pd

from perflab.instruments import Instrument, Load, Look, Observation, Scene
from perflab.load.failure_causes import AroundStop, around_stop
from perflab.load.workload import Workload
from perflab.recordings.responses import at_least_column
from perflab.stacks.plan import StackPlan


class BrokenOff(Instrument):
    """Sums up the requests that had begun when failures ended a load.

    ``requests_begun`` are those that had ended by then and those under way.
    ``failure_share_broken_off`` counts what was under way as failed, over all that had begun:
    what a tool prints that breaks it off. Both are NaN where the load held all of its users, and
    ``users_at_stop_at_least`` is then how many that were.
    """

    def look(self, scene: Scene) -> Look:  # noqa: ARG002
        """Return the look at one trial."""
        return _BrokenOff()

    def obstacles(self, stack: StackPlan, workload: Workload) -> Iterable[str]:  # noqa: ARG002
        """Return that no number of failures ends the load."""
        if not workload.stop.failures:
            yield "broken off: no number of failures ends it; say StopRules(failures=5)"


class _BrokenOff(Look):
    def observe(self, load: Load) -> Observation:
        """Return columns alone."""
        return Observation(begun_columns(around_stop(load.result), load.result.requests))


def begun_columns(stop: AroundStop | None, requests: pd.DataFrame) -> dict[str, float]:
    """Return the columns of :class:`BrokenOff`; ``stop`` is None where no failures ended it."""
    if stop is None:
        unknown = {"requests_begun": math.nan, "failure_share_broken_off": math.nan}
        return {**unknown, at_least_column("users_at_stop"): float(requests["user"].nunique())}
    begun = stop.until.requests + stop.under_way
    lost = stop.until.failures + stop.under_way
    share = lost / begun if begun else math.nan
    return {"requests_begun": float(begun), "failure_share_broken_off": share}
