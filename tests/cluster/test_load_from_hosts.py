"""One load sent by several hosts, which are network namespaces with workers of their own."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from perflab.load.columns import rows
from tests.cluster.namespaces import (
    AHEAD_S,
    HEAD,
    LoadHost,
    Network,
    has_other_clocks,
    network,
    wait_until,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ASKER = "asker"
# What may be said of generators that share two cores with each other and with the server.
BUSY = {
    "generator.lag", "generator.loop_delay", "generator.stalls", "generator.stalled_time",
    "generator.mean_delay", "generator.run_delay", "generator.cpu", "generator.littles_law",
    "host.steal", "host.clock", "host.late_start", "load.unsent",
}  # fmt: skip


def pair(made: Network) -> list[LoadHost]:
    """Start two hosts, of which the second, if it can, has another clock."""
    return [LoadHost(made, "one", False), LoadHost(made, "two", has_other_clocks())]


def shown(made: Network, url: str, *words: str) -> dict[str, Any]:
    """Send a load to its end and return its summary, which nothing but a busy machine refuses."""
    child = made.load(ASKER, url, "--json", *words)
    out, _ = child.communicate(timeout=200)
    assert child.returncode in (0, 3), made.told()
    found: dict[str, Any] = json.loads(out)
    assert {each["code"] for each in found["reasons"]} <= BUSY, found["reasons"]
    return found


@pytest.mark.measures
def test_hosts_keep_one_schedule_and_their_instants_are_of_one_clock(tmp_path: Path) -> None:
    with network(tmp_path, "one", "two", ASKER) as made:
        url, (one, two) = made.serve(), pair(made)
        began_ns = time.monotonic_ns()
        page = tmp_path / "page.html"
        words = ("--rate", "200", "-d", "3", "--out", str(tmp_path / "out"))
        found = shown(made, url, *words, "--report", str(page))
        ended_ns = time.monotonic_ns()
        assert one.left() == two.left() == []
    hosts = found["hosts"]
    assert [each["host"] for each in hosts] == ["one", "two"]
    assert found["requests"] == sum(each["requests"] for each in hosts) == 600
    assert (found["errors"], min(each["requests"] for each in hosts) > 0) == (0, True)
    requests = pd.read_parquet(tmp_path / "out" / "requests.parquet")
    instants = requests[["planned_ns", "started_ns", "sent_ns", "first_byte_ns", "done_ns"]]
    assert began_ns < instants.min().min()
    assert instants.max().max() < ended_ns
    assert instants.diff(axis=1).iloc[:, 1:].min().min() >= 0
    # The workers take turns in one schedule of 200 a second.
    workers = sum(each["workers"] for each in hosts)
    firsts = requests.groupby("worker")["planned_ns"].min()
    assert len(firsts) == workers
    for number, own in requests.groupby("worker")["planned_ns"]:
        assert (np.diff(np.sort(own)) == workers * 5_000_000).all(), number
    asked = firsts - np.arange(workers) * 5_000_000
    known_ns = sum(each["clock_error_ms"] for each in hosts) * 1e6
    assert np.ptp(asked) <= known_ns
    assert known_ns < 100e6
    # All of them run on one machine: what their clocks differ by is what the test has set.
    wanted_ms = [0, AHEAD_S * 1e3 if two.is_ahead else 0]
    for each, ahead_ms in zip(hosts, wanted_ms, strict=True):
        assert abs(each["clock_offset_ms"] - ahead_ms) <= each["clock_error_ms"]
    assert "2 hosts: one (" in made.told()
    assert "Hosts that sent it" in page.read_text()
    record = json.loads((tmp_path / "out" / "load.json").read_text())
    assert record["hosts"] == hosts


def test_users_are_shared_among_hosts_and_what_is_too_few_is_refused(tmp_path: Path) -> None:
    with network(tmp_path, "one", "two", ASKER) as made:
        url, hosts = made.serve(), pair(made)
        words = ("--users", "6", "-n", "300", "--workers", "2", "--out", str(tmp_path / "out"))
        found = shown(made, url, *words)
        assert [each["first_worker"] for each in found["hosts"]] == [0, 2]
        requests = pd.read_parquet(tmp_path / "out" / "requests.parquet")
        assert len(requests) == 300
        users = requests.groupby("worker")["user"].unique().map(sorted).map(list)
        assert users.to_dict() == {0: [0, 4], 1: [1, 5], 2: [2], 3: [3]}
        child = made.load(ASKER, url, "--users", "2", "--workers", "2", "-n", "10")
        assert child.wait(timeout=100) == 1
        assert "2 users are too few for 2 hosts" in made.told()
        assert [each.left() for each in hosts] == [[], []]


def test_a_dead_asker_leaves_nothing_on_the_hosts(tmp_path: Path) -> None:
    with network(tmp_path, "one", "two", ASKER) as made:
        url, hosts = made.serve(), pair(made)
        child = made.load(ASKER, url, "--rate", "50", "-d", "120")
        wait_until(lambda: all(each.is_sending() for each in hosts), 90, made.told)
        os.kill(child.pid, signal.SIGKILL)
        wait_until(lambda: not any(each.left() for each in hosts), 60, made.told)
        # They can be used as before.
        assert shown(made, url, "--rate", "50", "-d", "1")["requests"] == 50


def test_a_lost_host_ends_the_load_of_all_and_what_the_others_sent_is_kept(tmp_path: Path) -> None:
    with network(tmp_path, "one", "two", ASKER) as made:
        url, (one, two) = made.serve(), pair(made)
        out = tmp_path / "out"
        child = made.load(ASKER, url, "--rate", "50", "-d", "120", "--out", str(out))
        wait_until(lambda: one.is_sending() and two.is_sending(), 90, made.told)
        two.worker.send_signal(signal.SIGKILL)
        assert child.wait(timeout=90) == 1
        told = made.told()
        assert "two: its worker" in told
        assert f"what was recorded is kept in {out / 'raw'}" in told
        assert one.left() == []
        kept = rows(out / "raw" / "0")
        assert len(kept) > 0
        assert kept["planned_ns"].max() < time.monotonic_ns()


def test_a_host_that_leaves_is_named_and_one_that_came_later_sends_nothing(tmp_path: Path) -> None:
    with network(tmp_path, "one", "two", "late", ASKER) as made:
        url, (one, two) = made.serve(), pair(made)
        child = made.load(ASKER, url, "--rate", "50", "-d", "120")
        wait_until(lambda: one.is_sending() and two.is_sending(), 90, made.told)
        late = LoadHost(made, "late", False)
        two.worker.send_signal(signal.SIGTERM)
        assert child.wait(timeout=90) == 1
        assert "two: its worker was asked to end" in made.told()
        assert [each.left() for each in (one, late)] == [[], []]


def test_ctrl_c_ends_the_load_on_all_hosts_in_order(tmp_path: Path) -> None:
    with network(tmp_path, "one", "two", ASKER) as made:
        url, hosts = made.serve(), pair(made)
        child = made.load(ASKER, url, "--rate", "50", "-d", "120", "--json")
        wait_until(lambda: all(each.is_sending() for each in hosts), 90, made.told)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=90)
        assert child.returncode == 130, made.told()
        found = json.loads(out)
        assert found["stopped"]
        assert all(each["requests"] for each in found["hosts"])
        assert [each.left() for each in hosts] == [[], []]


def test_a_capacity_is_searched_from_all_hosts(tmp_path: Path) -> None:
    with network(tmp_path, "one", "two", ASKER) as made:
        # One answer at a time, each of 50 ms: 20 a second, whoever asks.
        url, hosts = made.serve(0.05, "one"), pair(made)
        words = ("--rate", "8", "--find-capacity", "--objective", "p50<400ms", "-d", "2", "--json")
        child = made.load(ASKER, url, *words)
        out, _ = child.communicate(timeout=280)
        assert child.returncode in (0, 3), made.told()
        found = json.loads(out)
        for each in found["probes"]:
            assert [host["host"] for host in each["hosts"]] == ["one", "two"]
        assert not found["low"] or found["low"] < 40
        assert [each.left() for each in hosts] == [[], []]


def test_loopback_and_hosts_that_measure_are_refused_before_anything_is_sent(
    tmp_path: Path,
) -> None:
    with network(tmp_path, "one", ASKER) as made:
        child = made.load(ASKER, "http://127.0.0.1:9/", "--users", "5")
        assert child.wait(timeout=60) == 1
        assert "every host would load itself" in made.told()
        child = made.load(ASKER, made.serve(), "--users", "5")
        assert child.wait(timeout=60) == 1
        assert "the scheduler has no worker" in made.told()
        url, host = made.serve(), LoadHost(made, "one", False)
        first = made.load(ASKER, url, "--rate", "20", "-d", "60")
        wait_until(host.is_sending, 90, made.told)
        second = made.load(HEAD, url, "--rate", "20", "-d", "1")
        assert second.wait(timeout=90) == 1
        assert "one: its worker has something else to do" in made.told()
        first.send_signal(signal.SIGTERM)
        first.communicate(timeout=60)
        assert host.left() == []
