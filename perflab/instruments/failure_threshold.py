"""What a load shows that a number of failures ended: users, requests and failures at its stop."""

from __future__ import annotations

import math
from collections.abc import Iterable

from perflab.instruments.instrument import Instrument, Load, Look, Observation, Scene
from perflab.load.failure_causes import around_stop
from perflab.load.result import LoadResult
from perflab.load.workload import Workload
from perflab.recordings.responses import at_least_column
from perflab.stacks.plan import StackPlan


class FailureThreshold(Instrument):
    """Tells at what users and after how many requests a number of failures ended a trial's load.

    ``reached_failures`` is 1 where they did, else 0; every other column is then NaN: the load held
    all of its users, and the number it would have failed at is only known to be above theirs.
    """

    def look(self, scene: Scene) -> Look:  # noqa: ARG002
        """Return the look at one trial."""
        return _FailureThreshold()

    def obstacles(self, stack: StackPlan, workload: Workload) -> Iterable[str]:  # noqa: ARG002
        """Return that no number of failures ends the load."""
        if not workload.stop.failures:
            yield "failure_threshold: no number of failures ends it; say StopRules(failures=5)"


class _FailureThreshold(Look):
    def observe(self, load: Load) -> Observation:
        """Return columns alone."""
        return Observation(stop_columns(load.result))


def stop_columns(result: LoadResult) -> dict[str, float]:
    """Return what ended before a load's end by failures and after it.

    ``users_at_stop`` (NaN without users, and where the number was reached only after the last of
    them had left: ``users_at_stop_at_least`` is then all of them), ``stop_after_s``,
    ``under_way_at_stop``; requests, successes and failures that ended until it (``_until_stop``,
    warm-up included), and those that
    ended later (``_after_stop``; ``given_up_after_stop``: cut off by the load's own end).
    """
    found = around_stop(result)
    if found is None:
        return {"reached_failures": 0.0, **dict.fromkeys(COLUMNS, math.nan)}
    users = math.nan if found.stop.users is None else float(found.stop.users)
    bound = {}
    if users == 0:
        # The plan was over, and all of its users had joined: what failed then failed with all.
        users = math.nan
        bound = {at_least_column("users_at_stop"): float(result.requests["user"].nunique())}
    until, after = found.until, found.after
    values = (
        users, found.stop.after_s, found.under_way, until.requests, until.successes,
        until.failures, after.requests, after.successes, after.failures, after.given_up,
    )  # fmt: skip
    known = dict(zip(COLUMNS, map(float, values), strict=True))
    return {"reached_failures": 1.0, **known, **bound}


COLUMNS = (
    "users_at_stop", "stop_after_s", "under_way_at_stop", "requests_until_stop",
    "successes_until_stop", "failures_until_stop", "requests_after_stop", "successes_after_stop",
    "failures_after_stop", "given_up_after_stop",
)  # fmt: skip
