"""The life cycle of connections, against a server that counts them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from perflab.load.life_cycle import Connections
from perflab.load.workload import ClosedLoop, Workload
from tests.load.meter import Meter, drive, on_loop

CLOSED = ClosedLoop(users=1, requests=1)


def crowd(users: int = 1, client: str = "lean", **life: Any) -> Workload:
    """Return a workload of users who share nothing but a life cycle of connections."""
    return Workload.model_validate(
        {
            "request": {}, "arrivals": {"kind": "closed", "users": users, "requests": 1},
            "client": client, "connections": life,
        }
    )  # fmt: skip


def measured(work: Workload, requests: int, **options: Any) -> Meter:
    """Drive a workload against a server that counts; no request may fail."""

    async def go() -> Meter:
        async with (meter := Meter()) as url:
            errors = await drive(work, url, requests, **options)
        assert set(errors) == {""}
        return meter

    found: Meter = on_loop(go)
    return found


def loads(meter: Meter) -> list[int]:
    """Return how many requests each connection had."""
    return [len(each.taken) for each in meter.seen]


@pytest.mark.parametrize(
    ("life", "expected"),
    [({}, [9]), ({"requests": 1}, [1] * 9), ({"requests": 4}, [4, 4, 1]), ({"requests": 9}, [9])],
)
def test_a_connection_has_so_many_requests_and_no_more(
    life: dict[str, int], expected: list[int]
) -> None:
    meter = measured(crowd(**life), 9)
    assert loads(meter) == expected
    says = [b"connection: close" in each.head for seen in meter.seen for each in seen.taken]
    assert set(says) == {life.get("requests") == 1}


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 6), st.integers(1, 12), st.integers(1, 12))
def test_users_share_no_more_connections_than_their_requests_need(
    users: int, each: int, requests: int
) -> None:
    meter = measured(crowd(users, requests=each), requests)
    full, rest = divmod(requests, each)
    expected = ([each] * full + [rest] * bool(rest)) * users
    assert sorted(loads(meter)) == sorted(expected)


@pytest.mark.alone
@pytest.mark.parametrize("most", [0, 2])
def test_an_idle_connection_is_closed_in_time_and_not_before(most: int) -> None:
    meter = measured(crowd(idle_s=0.4, most=most), 6, pause_s=0.02, before_close_s=2.0)
    assert loads(meter) == [6]
    (seen,) = meter.seen
    # The last pause belongs to the idle time; its user would have closed it two seconds later.
    assert 0.35 <= seen.closed_s - seen.last_s <= 1.2


@pytest.mark.alone
def test_a_user_who_thinks_longer_than_a_connection_may_idle_opens_another() -> None:
    meter = measured(crowd(idle_s=0.05), 4, pause_s=0.4)
    assert loads(meter) == [1] * 4
    assert all(each.closed_s - each.last_s < 0.3 for each in meter.seen)


@pytest.mark.alone
def test_churn_closes_the_oldest_at_its_rate_and_fails_nothing() -> None:
    meter = measured(crowd(4, churn_per_s=40.0), 100, pause_s=0.01)
    lived_s = max(each.closed_s for each in meter.seen) - meter.seen[0].opened_s
    # Four at the end are closed by the end, not by churn.
    assert 40 * lived_s / 3 < len(meter.seen) - 4 < 40 * lived_s + 6
    assert sum(loads(meter)) == 400
    closed = [each.closed_s for each in meter.seen[:-4]]
    late = [later - earlier for earlier, later in zip(closed, closed[4:], strict=False)]
    assert min(late) > 0


def test_churn_by_share_closes_after_that_share_of_requests() -> None:
    meter = measured(crowd(churn_share=0.25), 400)
    assert 70 <= len(meter.seen) <= 130
    assert loads(measured(crowd(churn_share=1.0), 5)) == [1] * 5


@pytest.mark.parametrize("client", ["aiohttp", "httpx"])
def test_library_clients_keep_what_they_can(client: str) -> None:
    assert loads(measured(crowd(client=client), 5)) == [5]
    assert loads(measured(crowd(client=client, requests=1), 5)) == [1] * 5


@pytest.mark.alone
def test_aiohttp_closes_what_is_idle() -> None:
    assert loads(measured(crowd(client="aiohttp", idle_s=0.05), 3, pause_s=0.4)) == [1] * 3
    assert loads(measured(crowd(client="aiohttp", idle_s=2.0), 3, pause_s=0.02)) == [3]


@pytest.mark.parametrize(
    ("client", "life", "reason"),
    [
        ("aiohttp", {"requests": 2}, "after a number of requests"),
        ("httpx", {"churn_per_s": 1}, "has no churn"),
        ("httpx", {"churn_share": 0.1}, "has no churn"),
        ("httpx", {"idle_s": 1}, "only when it sends the next request"),
        ("lean", {"requests": 1, "idle_s": 1}, "has no idle time"),
        ("lean", {"churn_share": 0.1, "churn_per_s": 1}, "not both"),
        ("lean", {"requests": -1}, "greater than or equal to 0"),
        ("lean", {"request": 1}, "Extra inputs"),
    ],
)
def test_what_a_client_cannot_do_is_refused_before_the_start(
    client: str, life: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValidationError, match=reason):
        crowd(client=client, **life)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({}, Connections()),
        ({"connections": "keep_alive"}, Connections()),
        ({"connections": "per_request"}, Connections(requests=1)),
        ({"connections": 7}, Connections(most=7)),
        ({"connections": {"idle_s": 2}}, Connections(idle_s=2)),
    ],
)
def test_words_and_caps_stand_for_life_cycles(words: Any, expected: Connections) -> None:
    work = Workload.model_validate({"request": {}, "arrivals": CLOSED, **words})
    assert work.connections == expected
    assert Workload.model_validate_json(work.model_dump_json()) == work


def test_another_word_is_refused() -> None:
    with pytest.raises(ValidationError, match="is not keep_alive or per_request"):
        Workload.model_validate({"request": {}, "arrivals": CLOSED, "connections": "close"})


def test_each_worker_has_its_part() -> None:
    whole = Connections(requests=3, churn_per_s=10, most=7)
    parts = [whole.part(most, 2) for most in (4, 3)]
    assert [each.churn_per_s for each in parts] == [5, 5]
    assert [each.most for each in parts] == [4, 3]
    assert all(each.requests == 3 for each in parts)
