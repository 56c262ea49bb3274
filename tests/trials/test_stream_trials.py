"""What is said of a trial's streams: phases, rates, and every message that was lost."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from perflab.load.messages import SENT
from perflab.trials.streams import Streams, look
from tests.synthetic import HOUR_NS
from tests.synthetic_streams import HEARERS, counts_of, cpu, crowd, noted

S = 1_000_000_000
SERVICES = ["chat", "client"]


def seen(messages: pd.DataFrame, **counts: object) -> Streams:
    return look(messages, cpu(messages), SERVICES, counts_of(messages, **counts))


def test_a_load_without_streams_has_no_columns_of_them() -> None:
    nothing = look(noted(), cpu(crowd()), SERVICES, {})
    assert nothing.table is None
    assert not nothing.row


def test_the_plateau_lies_between_the_last_first_action_and_the_first_last_one() -> None:
    row = seen(crowd(users=20, join_s=0.5, acting_s=30)).row
    assert (row["joined_ns"] - HOUR_NS) / S == pytest.approx(9.5)
    assert (row["plateau_begin_ns"] - HOUR_NS) / S == pytest.approx(9.5 + 1 + 19 * 0.013, abs=0.01)
    assert (row["plateau_end_ns"] - HOUR_NS) / S == pytest.approx(30, abs=0.01)
    assert row["active_users"] == 20
    # The monitor does not connect in this crowd.
    assert row["most_connected"] == 20


def test_rates_percentiles_and_costs_are_those_of_the_load() -> None:
    row = seen(crowd(users=20, delay_s=0.004)).row
    assert row["messages_delivered"] == 20 * 30 * HEARERS
    assert row["messages_per_s"] == pytest.approx(20 * HEARERS, rel=0.05)
    assert row["delivery_p50_ms"] == pytest.approx(10, abs=2.1)
    assert row["delivery_p99_ms"] == pytest.approx(16, abs=0.1)
    assert row["ping_p50_ms"] == pytest.approx(2, abs=0.01)
    assert math.isnan(row["ping_p90_ms"])
    assert row["plateau_cpu_share_chat"] == pytest.approx(0.2, abs=0.01)
    assert row["cpu_us_per_message"] == pytest.approx(0.2 / 80 * 1e6, rel=0.06)
    assert row["messages_lost"] == 0


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ({"delivered": 2500}, "the server delivered 2500 messages, the receivers read 2400"),
        ({"delivered": 2399}, "the receivers read 2400"),
        ({"received": 601}, "600 messages were sent, the server received 601"),
        ({"refused": {"bad_frame": 2}}, "2 bad_frame"),
    ],
)
def test_a_message_that_is_lost_or_too_many_refuses_the_trial(
    counts: dict[str, object], reason: str
) -> None:
    good, bad = seen(crowd()), seen(crowd(), **counts)
    assert good.reasons == ()
    assert any(reason in each for each in bad.reasons)


def test_a_connection_that_was_cut_refuses_the_trial() -> None:
    cut = pd.concat([crowd(), noted((20.0, 3, SENT, "cut", -1))], ignore_index=True)
    assert any("1 WebSockets ended" in each for each in seen(cut).reasons)


def test_a_busy_client_refuses_the_trial() -> None:
    messages = crowd()
    samples = cpu(messages)
    samples.loc[samples["service"] == "client", "cpu_ns"] *= 10
    found = look(messages, samples, SERVICES, counts_of(messages))
    assert any("the client used" in each for each in found.reasons)


def test_users_who_leave_before_all_have_begun_leave_no_plateau_and_it_is_said() -> None:
    found = seen(crowd(users=20, join_s=2.0, acting_s=5))
    assert math.isnan(found.row["messages_per_s"])
    assert any("no plateau" in each for each in found.warnings)
