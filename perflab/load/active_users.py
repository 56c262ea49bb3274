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
        return _joined(arrivals.users, arrivals.join_s, since_start_ns)
    if not isinstance(arrivals, ClosedLoop):
        return None
    if arrivals.stages:
        return sum(
            any(since <= since_start_ns < until for since, until in stays(arrivals.stages, user))
            for user in range(arrivals.users)
        )
    return _joined(arrivals.users, arrivals.ramp_s / arrivals.users, since_start_ns)


def _joined(users: int, gap_s: float, since_start_ns: int) -> int:
    """Count by the users' own instants: a division would be one off where they are rounded."""
    if since_start_ns < 0:
        return 0
    if not gap_s:
        return users
    near = min(users, round(since_start_ns / 1e9 / gap_s) + 2)
    while near and round(gap_s * 1e9 * (near - 1)) > since_start_ns:
        near -= 1
    return near
