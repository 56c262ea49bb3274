"""How many users take part in a load at an instant, as its plan has them come and go."""

from __future__ import annotations

from perflab.load.schedule import stays
from perflab.load.workload import Arrivals, ClosedLoop, Scripted


def active(arrivals: Arrivals, since_start_ns: int) -> int | None:
    """Return how many users have joined and not left; None where a load has no users.

    Parameters
    ----------
    since_start_ns : int
        An instant, in ns from the common start of the load.
    """
    if isinstance(arrivals, Scripted):
        join_ns = round(arrivals.join_s * 1e9)
        return sum(user * join_ns <= since_start_ns for user in range(arrivals.users))
    if not isinstance(arrivals, ClosedLoop):
        return None
    if arrivals.stages:
        return sum(
            any(since <= since_start_ns < until for since, until in stays(arrivals.stages, user))
            for user in range(arrivals.users)
        )
    return sum(
        round(arrivals.ramp_s * 1e9 * user / arrivals.users) <= since_start_ns
        for user in range(arrivals.users)
    )
