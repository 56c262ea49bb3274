"""Users over time: by the plan, and by the drivers; each user keeps its own pace."""

from __future__ import annotations

from perflab.load.workload import Burst, ClosedLoop, Scripted
from perflab.load.workload.arrivals import active
from tests.load.virtual import MS, S, Sent, World

# As published: up to 500 users, a request of each every 20 s, for eight minutes.
PUBLISHED = ClosedLoop(users=500, duration_s=480, max_duration_s=480, pacing_s=20, ramp_s=480)


def carried_out(arrivals: ClosedLoop, world: World) -> dict[int, list[Sent]]:
    """Return the requests of each user, in virtual time."""
    requests, _ = world.closed(arrivals)
    return {
        user: [request for request in requests if request.user == user]
        for user in range(arrivals.users)
    }


def test_500_users_who_join_over_8_minutes_each_keep_their_own_pace() -> None:
    world = World(service_ns=3 * S, late_ns=7 * MS, handling_ns=2 * MS)
    for user, requests in carried_out(PUBLISHED, world).items():
        joins_ns = round(user * 480 / 500 * S)
        turns = -(-(480 * S - joins_ns) // (20 * S))
        assert [request.planned_ns for request in requests] == [
            joins_ns + 20 * S * k for k in range(turns)
        ]


def test_the_record_shows_as_many_users_at_any_time_as_the_plan_has() -> None:
    ramp = ClosedLoop(users=60, duration_s=40, pacing_s=5, ramp_s=30)
    by_user = carried_out(ramp, World(service_ns=S, late_ns=3 * MS))
    joined_ns = [min(request.planned_ns for request in requests) for requests in by_user.values()]
    assert len(set(joined_ns)) == 60
    for at_s in (0.0, 0.499, 0.5, 7.3, 29.4, 29.5, 35.0):
        recorded = sum(join_ns <= at_s * S for join_ns in joined_ns)
        assert recorded == active(ramp, round(at_s * S))
    assert active(ramp, 40 * S) == 0, "the load is over"


def test_scripted_users_join_one_by_one_and_a_burst_has_no_users() -> None:
    one_by_one = Scripted(script="a:B", users=5, duration_s=9, join_s=2)
    assert [active(one_by_one, at * S) for at in (0, 1, 2, 20)] == [1, 1, 2, 5]
    assert active(Burst(size=3), 0) is None
