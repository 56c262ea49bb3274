"""What is said of a trial's streams: phases, rates, and every message that was lost."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from perflab.instruments import Observation
from perflab.load.records.looks import Looks
from perflab.load.records.message_record import RECEIVED, SENT, WIRE
from perflab.statistics.percentiles import hidden_share
from perflab.systems.chat import streams
from perflab.systems.chat.streams import observed
from perflab.trials.summary import message_table
from tests.support.synthetic import HOUR_NS
from tests.systems.chat.synthetic_streams import HEARERS, counts_of, cpu, crowd, noted

S = 1_000_000_000
SERVICES = ["chat", "client"]


def seen(messages: pd.DataFrame, **counts: object) -> Observation:
    return observed(messages, cpu(messages), SERVICES, counts_of(messages, **counts))


def test_the_plateau_lies_between_the_last_first_action_and_the_first_last_one() -> None:
    row = seen(crowd(users=20, join_s=0.5, acting_s=30)).columns
    assert (row["joined_ns"] - HOUR_NS) / S == pytest.approx(9.5)
    assert (row["plateau_begin_ns"] - HOUR_NS) / S == pytest.approx(9.5 + 1 + 19 * 0.013, abs=0.01)
    assert (row["plateau_end_ns"] - HOUR_NS) / S == pytest.approx(30, abs=0.01)


def test_rates_percentiles_and_costs_are_those_of_the_load() -> None:
    row = seen(crowd(users=20, delay_s=0.004)).columns
    assert row["messages_delivered"] == 20 * 30 * HEARERS
    assert row["messages_per_s"] == pytest.approx(20 * HEARERS, rel=0.05)
    assert row["delivery_p50_ms"] == pytest.approx(10, abs=2.1)
    assert row["delivery_p99_ms"] == pytest.approx(16, abs=0.1)
    assert row["all_ping_p50_ms"] == pytest.approx(2, abs=0.01)
    assert math.isnan(row["all_ping_p90_ms"])
    assert row["plateau_cpu_share_chat"] == pytest.approx(0.2, abs=0.01)
    assert row["cpu_us_per_message"] == pytest.approx(0.2 / 80 * 1e6, rel=0.06)
    assert row["messages_lost"] == 0


def test_latencies_that_may_be_the_clients_own_are_marked_and_compared_with_nothing() -> None:
    # Delays of the client of up to 0.6 ms are much to pings of 2 ms, and little to deliveries.
    short = Looks(np.arange(1, 1001) * 30_000_000 + HOUR_NS, np.linspace(0, 0.6, 1000))
    found = observed(crowd(), cpu(crowd()), SERVICES, counts_of(crowd()), [short])
    row = found.columns
    assert row["delivery_p50_ms"] == pytest.approx(10, abs=2.1)
    assert row["delivery_p50_client_ms"] == pytest.approx(0.4, abs=0.02)
    assert math.isnan(row["all_ping_p50_ms"])
    (said,) = found.warnings
    assert said.code == "generator.client_time"
    assert "of all_ping p50 of 2 ms up to 0.3 ms" in said.text
    assert "delivery" not in said.text


def test_a_late_sender_and_a_receiver_that_stood_still_are_the_clients_own() -> None:
    late = crowd()
    late.loc[late["kind"] == "send", "at_ns"] += 3_000_000
    row = observed(late, cpu(late), SERVICES, counts_of(late)).columns
    assert row["delivery_p50_client_ms"] == pytest.approx(3.1)
    assert math.isnan(row["delivery_p50_ms"])
    # The loop stood still for 5 ms of every 25: most of what came then had waited for it.
    ends = np.arange(0, 45 * S, 25_000_000) + HOUR_NS
    still = Looks(ends, np.full(len(ends), 5.0))
    row = observed(crowd(), cpu(crowd()), SERVICES, counts_of(crowd()), [still]).columns
    assert row["delivery_mean_client_ms"] == pytest.approx(10 * 10 / 25, rel=0.2)
    assert math.isnan(row["delivery_mean_ms"])


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ({"delivered": 2500}, "the server delivered 2500 messages, the receivers read 2400"),
        ({"delivered": 2399}, "the receivers read 2400"),
        ({"received": 601}, "600 messages were sent, the server received 601"),
        ({"refused": {"bad_frame": 2}}, "2 bad_frame"),
        ({"dropped": 30}, "the server dropped 30 of 2430 messages: the p99 could be anything"),
        ({"not_stored": 1}, "the server could not store 1 messages"),
    ],
)
def test_a_message_that_is_lost_or_too_many_refuses_the_trial(
    counts: dict[str, object], reason: str
) -> None:
    good, bad = seen(crowd()), seen(crowd(), **counts)
    assert good.reasons == ()
    assert any(reason in each for each in bad.reasons)


def test_dropped_messages_matter_by_what_they_can_hide() -> None:
    steep = np.arange(1.0, 10_001.0) ** 8
    assert hidden_share(steep, 10, 0.99) == pytest.approx((0.99099 / 0.99) ** 8 - 1, rel=1e-3)
    assert hidden_share(np.ones(10_000), 10, 0.99) == 0.0
    assert hidden_share(np.ones(10_000), 102, 0.99) == np.inf
    assert hidden_share(np.array([]), 1, 0.99) == np.inf


def test_messages_dropped_for_a_leaving_user_are_told_and_do_not_refuse() -> None:
    found = seen(crowd(), dropped=2)
    assert found.reasons == ()
    assert found.columns["server_dropped"] == 2
    assert any("dropped 2 of 2402" in each for each in found.warnings)


def test_acknowledged_messages_that_still_wait_for_the_disk_are_told() -> None:
    found = seen(crowd(), acknowledged=600, stored=590, not_stored=4)
    assert (found.columns["server_unstored"], found.columns["server_not_stored"]) == (6, 4)
    assert any("6 acknowledged messages were not yet stored" in each for each in found.warnings)
    assert seen(crowd(), acknowledged=600, stored=600).warnings == ()


def without(messages: pd.DataFrame, kind: str, number: int) -> pd.DataFrame:
    """Return messages without the last ones of a kind."""
    gone = messages.index[messages["kind"] == kind][-number:]
    return messages.drop(gone).reset_index(drop=True)


@pytest.mark.parametrize(
    ("kind", "column", "reason"),
    [
        ("ack", "unanswered_actions", "1 of 600 actions were never answered"),
        ("pong", "unanswered_pings", "1 of 30 pings were never answered"),
    ],
)
def test_an_answer_that_never_came_refuses_the_trial(kind: str, column: str, reason: str) -> None:
    good, bad = seen(crowd()), seen(without(crowd(), kind, 1))
    assert (good.columns[column], bad.columns[column]) == (0, 1)
    assert [each.side for each in bad.reasons if reason in each] == ["server"]


def test_more_answers_than_actions_are_no_record() -> None:
    found = seen(without(crowd(), "send", 2), received=600)
    assert any("598 actions had 600 answers" in each for each in found.reasons)


def test_behind_a_growing_queue_the_plateau_keeps_its_slowest_deliveries() -> None:
    messages = crowd(growth=0.2)
    row = seen(messages).columns
    heard = messages[messages["kind"] == "delivery"]
    latency_ms = (heard["at_ns"] - heard["key"]) / 1e6
    on_plateau = {
        name: heard[name].between(row["plateau_begin_ns"], row["plateau_end_ns"])
        for name in ("key", "at_ns")
    }
    assert row["plateau_p90_ms"] == pytest.approx(latency_ms[on_plateau["key"]].quantile(0.9))
    assert row["plateau_p90_ms"] > 1.5 * latency_ms[on_plateau["at_ns"]].quantile(0.9)
    # Rates are of what came.
    assert row["messages_per_s"] == pytest.approx(on_plateau["at_ns"].sum() / row["plateau_s"])


@pytest.mark.parametrize(
    ("refused", "side"), [({"slow_reader": 3}, "server"), ({"bad_frame": 1}, "unknown")]
)
def test_only_what_overload_does_is_laid_at_the_servers_door(
    refused: dict[str, int], side: str
) -> None:
    found = seen(crowd(), refused=refused)
    assert [each.side for each in found.reasons] == [side]


def test_latency_while_users_join_is_of_what_was_sent_until_the_last_had_joined() -> None:
    row = seen(crowd(users=20, join_s=0.5, growth=0.2)).columns
    # The crowd's deliveries grow late from the last join on: what was sent before is not touched.
    assert row["join_p90_ms"] < 50 < row["plateau_p90_ms"]


def test_a_connection_that_was_cut_refuses_the_trial() -> None:
    cut = pd.concat([crowd(), noted((20.0, 3, SENT, "cut", -1))], ignore_index=True)
    assert any("1 WebSockets ended" in each for each in seen(cut).reasons)


def test_a_busy_client_refuses_the_trial() -> None:
    messages = crowd()
    samples = cpu(messages)
    samples.loc[samples["service"] == "client", "cpu_ns"] *= 10
    found = observed(messages, samples, SERVICES, counts_of(messages))
    assert any("the client used" in each for each in found.reasons)


def test_users_who_leave_before_all_have_begun_leave_no_plateau_and_it_is_said() -> None:
    found = seen(crowd(users=20, join_s=2.0, acting_s=5))
    assert math.isnan(found.columns["messages_per_s"])
    assert any("no plateau" in each for each in found.warnings)


def test_what_other_threads_use_beside_the_loop_is_told_of_the_trial_alone() -> None:
    before = {"chat": {"cpu_s": 5.0, "loop_cpu_s": 4.0, "monotonic_ns": 7 * S}}
    after = {"chat": {"cpu_s": 9.0, "loop_cpu_s": 7.0, "monotonic_ns": 17 * S}}
    found = streams.beside_loop_shares(before, after)
    assert found == {"beside_loop_cpu_share_chat": pytest.approx(0.1)}
    assert streams.beside_loop_shares({}, after) == {}


def test_bytes_on_the_wire_are_those_of_the_users_who_told() -> None:
    rows = [
        (1.0 + each / 10, user, RECEIVED, "delivery", 1.0) for user in (0, 1) for each in (1, 2)
    ]
    told = noted(*rows, (3.0, 0, RECEIVED, WIRE, -1))
    told.loc[told["kind"] == WIRE, "bytes"] = 150
    # Two messages of 100 bytes each came to the user who told, in 150 bytes.
    found = streams.wire_columns(message_table(told), messages_per_s=1000.0)
    assert found["wire_bytes_per_message"] == 75
    assert found["wire_share"] == 0.75
    assert found["wire_mbit_per_s"] == pytest.approx(0.6)
    silent = streams.wire_columns(message_table(noted(*rows)), messages_per_s=1000.0)
    assert all(math.isnan(value) for value in silent.values())
