"""The responses of a trial's streams: phases, rates, latencies and lost messages."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from perflab.instruments import Observation
from perflab.load.records.message_record import RECEIVED, SENT, WIRE
from perflab.load.records.wakeups import Wakeups
from perflab.statistics.quantiles import hidden_share
from perflab.systems.chat import streams
from perflab.systems.chat.streams import observed
from perflab.trials.summary import message_table
from tests.support.synthetic import HOUR_NS
from tests.systems.chat.synthetic_streams import RECEIVERS, counts_of, cpu, crowd, messages_table

S = 1_000_000_000
SERVICES = ["chat", "client"]


def observed_in(messages: pd.DataFrame, **counts: object) -> Observation:
    return observed(messages, cpu(messages), SERVICES, counts_of(messages, **counts))


def test_the_plateau_lies_between_the_last_first_action_and_the_first_last_action() -> None:
    row = observed_in(crowd(users=20, join_s=0.5, acting_s=30)).columns
    assert (row["joined_ns"] - HOUR_NS) / S == pytest.approx(9.5)
    assert (row["plateau_begin_ns"] - HOUR_NS) / S == pytest.approx(9.5 + 1 + 19 * 0.013, abs=0.01)
    assert (row["plateau_end_ns"] - HOUR_NS) / S == pytest.approx(30, abs=0.01)


def test_rates_percentiles_and_costs_are_those_of_the_load() -> None:
    row = observed_in(crowd(users=20)).columns
    assert row["messages_delivered"] == 20 * 30 * RECEIVERS
    assert row["messages_per_s"] == pytest.approx(20 * RECEIVERS, rel=0.05)
    assert row["delivery_p50_ms"] == pytest.approx(10, abs=2.1)
    assert row["delivery_p99_ms"] == pytest.approx(16, abs=0.1)
    assert row["all_ping_p50_ms"] == pytest.approx(2, abs=0.01)
    assert math.isnan(row["all_ping_p90_ms"])
    assert row["plateau_cpu_share_chat"] == pytest.approx(0.2, abs=0.01)
    assert row["cpu_us_per_message"] == pytest.approx(0.2 / 80 * 1e6, rel=0.06)


def test_latencies_that_may_be_the_clients_own_are_marked() -> None:
    # Delays of the client of up to 0.6 ms are much to pings of 2 ms, and little to deliveries.
    wakeups = Wakeups(np.arange(1, 1001) * 30_000_000 + HOUR_NS, np.linspace(0, 0.6, 1000))
    observation = observed(crowd(), cpu(crowd()), SERVICES, counts_of(crowd()), [wakeups])
    row = observation.columns
    assert row["delivery_p50_ms"] == pytest.approx(10, abs=2.1)
    assert row["delivery_p50_client_ms"] == pytest.approx(0.4, abs=0.02)
    assert row["all_ping_p50_client_ms"] == pytest.approx(0.3, abs=0.02)
    (warning,) = observation.warnings
    assert warning.code == "generator.client_time"
    assert "up to 0.3 ms of all_ping p50 2 ms" in warning.text
    assert "delivery" not in warning.text


def test_what_a_late_sender_adds_is_the_clients_own() -> None:
    late = crowd()
    late.loc[late["kind"] == "send", "at_ns"] += 3_000_000
    row = observed(late, cpu(late), SERVICES, counts_of(late)).columns
    assert row["delivery_p50_client_ms"] == pytest.approx(3.1)


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ({"delivered": 2500}, "the server delivered 2500 messages, but the receivers read 2400"),
        ({"received": 601}, "600 messages were sent, but the server received 601"),
        ({"refused": {"bad_frame": 2}}, "2 bad_frame"),
        ({"dropped": 30}, "the server dropped 30 of 2430 messages: the p99 could be of any size"),
        ({"not_stored": 1}, "the server could not store 1 messages"),
    ],
)
def test_a_message_that_is_lost_or_too_many_refuses_the_trial(
    counts: dict[str, object], reason: str
) -> None:
    valid, refused = observed_in(crowd()), observed_in(crowd(), **counts)
    assert not valid.reasons
    assert any(reason in text for text in refused.reasons)


def test_dropped_messages_matter_by_the_shift_of_the_percentile_that_they_can_hide() -> None:
    steep = np.arange(1.0, 10_001.0) ** 8
    assert hidden_share(steep, 10, 0.99) == pytest.approx((0.99099 / 0.99) ** 8 - 1, rel=1e-3)
    assert hidden_share(np.ones(10_000), 102, 0.99) == np.inf


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({"dropped": 2}, "dropped 2 of 2402"),
        (
            {"acknowledged": 600, "stored": 594},
            "6 acknowledged messages were not yet stored",
        ),
    ],
)
def test_messages_dropped_for_a_leaving_user_or_not_yet_stored_are_a_warning(
    counts: dict[str, int], words: str
) -> None:
    observation = observed_in(crowd(), **counts)
    assert not observation.reasons
    assert any(words in warning for warning in observation.warnings)


def without(messages: pd.DataFrame, kind: str, number: int) -> pd.DataFrame:
    """Return messages without the last ``number`` of a kind."""
    gone = messages.index[messages["kind"] == kind][-number:]
    return messages.drop(gone).reset_index(drop=True)


@pytest.mark.parametrize(
    ("kind", "reason"), [("ack", "1 of 600 actions"), ("pong", "1 of 30 pings")]
)
def test_an_answer_that_never_came_refuses_the_trial(kind: str, reason: str) -> None:
    refused = observed_in(without(crowd(), kind, 1))
    assert [text.side for text in refused.reasons if reason in text] == ["server"]


def test_behind_a_growing_queue_the_plateau_keeps_its_slowest_deliveries() -> None:
    messages = crowd(growth=0.2)
    row = observed_in(messages).columns
    deliveries = messages[messages["kind"] == "delivery"]
    latency_ms = (deliveries["at_ns"] - deliveries["key"]) / 1e6
    on_plateau = {
        name: deliveries[name].between(row["plateau_begin_ns"], row["plateau_end_ns"])
        for name in ("key", "at_ns")
    }
    assert row["plateau_p90_ms"] == pytest.approx(latency_ms[on_plateau["key"]].quantile(0.9))
    assert row["plateau_p90_ms"] > 1.5 * latency_ms[on_plateau["at_ns"]].quantile(0.9)
    # Rates count deliveries by the instant at which they came.
    assert row["messages_per_s"] == pytest.approx(on_plateau["at_ns"].sum() / row["plateau_s"])


@pytest.mark.parametrize(
    ("refused", "side"), [({"slow_reader": 3}, "server"), ({"bad_frame": 1}, "unknown")]
)
def test_only_refusals_of_an_overloaded_server_are_the_servers_fault(
    refused: dict[str, int], side: str
) -> None:
    observation = observed_in(crowd(), refused=refused)
    assert [reason.side for reason in observation.reasons] == [side]


def test_latency_while_users_join_is_of_messages_sent_before_the_last_join() -> None:
    row = observed_in(crowd(users=20, join_s=0.5, growth=0.2)).columns
    # Deliveries become late only after the last join, so those sent before are fast.
    assert row["join_p90_ms"] < 50 < row["plateau_p90_ms"]


def test_a_connection_that_was_cut_refuses_the_trial() -> None:
    cut = pd.concat([crowd(), messages_table((20.0, 3, SENT, "cut", -1))], ignore_index=True)
    assert any("1 WebSockets ended" in reason for reason in observed_in(cut).reasons)


def test_a_busy_client_refuses_the_trial() -> None:
    messages = crowd()
    samples = cpu(messages)
    samples.loc[samples["service"] == "client", "cpu_ns"] *= 10
    observation = observed(messages, samples, SERVICES, counts_of(messages))
    assert any("the client used" in reason for reason in observation.reasons)


def test_a_crowd_without_a_plateau_is_a_warning() -> None:
    observation = observed_in(crowd(users=20, join_s=2.0, acting_s=5))
    assert math.isnan(observation.columns["messages_per_s"])
    assert any("no plateau" in warning for warning in observation.warnings)


def test_the_cpu_of_threads_beside_the_loop_is_of_the_trial_only() -> None:
    before = {"cpu_s": 5.0, "loop_cpu_s": 4.0, "monotonic_ns": 7 * S}
    after = {"cpu_s": 9.0, "loop_cpu_s": 7.0, "monotonic_ns": 17 * S}
    assert streams.beside_loop_share(before, after) == pytest.approx(0.1)


def test_bytes_on_the_wire_are_those_of_users_who_recorded_them() -> None:
    rows = [
        (1.0 + number / 10, user, RECEIVED, "delivery", 1.0) for user in (0, 1) for number in (1, 2)
    ]
    messages = messages_table(*rows, (3.0, 0, RECEIVED, WIRE, -1))
    messages.loc[messages["kind"] == WIRE, "bytes"] = 150
    # The user with a WIRE row got two messages of 100 bytes each in 150 bytes.
    columns = streams.wire_columns(message_table(messages), messages_per_s=1000.0)
    assert columns == {
        "wire_bytes_per_message": 75, "wire_share": 0.75, "wire_mbit_per_s": pytest.approx(0.6),
    }  # fmt: skip
    unknown = streams.wire_columns(message_table(messages_table(*rows)), messages_per_s=1000.0)
    assert all(math.isnan(value) for value in unknown.values())
