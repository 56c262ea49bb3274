"""Users over time: by the plan, and by the drivers; each user keeps its own pace."""

from __future__ import annotations

from collections import Counter

from perflab.load.workload import Burst, ClosedLoop, OpenLoop, Scripted, Stage, UserStage
from perflab.load.workload.schedule import active, stays
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


def test_users_in_stages_come_and_go_and_loads_without_users_have_none() -> None:
    up_and_down = (UserStage(users=0, to_users=10, duration_s=10),
                   UserStage(users=10, to_users=4, duration_s=6))  # fmt: skip
    loop = ClosedLoop(users=10, duration_s=16, stages=up_and_down)
    counts = Counter({at: active(loop, at * S + 1) for at in (0, 5, 9, 11, 15)})
    assert counts == {0: 1, 5: 6, 9: 10, 11: 9, 15: 5}
    one_by_one = Scripted(script="a:B", users=5, duration_s=9, join_s=2)
    assert [active(one_by_one, at * S) for at in (0, 1, 2, 20)] == [1, 1, 2, 5]
    assert active(OpenLoop(stages=(Stage(rate=1, duration_s=1),)), 0) is None
    assert active(Burst(size=3), 0) is None


def test_users_in_stages_send_while_they_take_part() -> None:
    stages = (UserStage(users=0, to_users=10, duration_s=10),
              UserStage(users=10, to_users=4, duration_s=6))  # fmt: skip
    loop = ClosedLoop(users=10, duration_s=16, max_duration_s=16, pacing_s=0.5, stages=stages)
    for user, requests in carried_out(loop, World(service_ns=30 * MS)).items():
        ((since_ns, until_ns),) = stays(stages, user)
        assert requests[0].planned_ns == since_ns
        assert until_ns - S <= requests[-1].planned_ns < until_ns
