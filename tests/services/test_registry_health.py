"""The registry's health side: who may start the workload, what it does, and what it says of it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from health_side import MOST_BYTES, RESULTS, WORKLOAD, HealthSide, bench, workload
from running import wait_until

TINY = "arnir0/Tiny-LLM"
BODY_BYTES = 204_800
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def side(own_places: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HealthSide]:  # noqa: ARG001
    with bench(tmp_path_factory.mktemp("bench")) as running:
        yield running


def test_the_published_body_is_answered_at_once_and_its_results_come_later(
    side: HealthSide,
) -> None:
    reply = side.ask("POST", WORKLOAD, workload(TINY, clients=30))
    assert reply.status == 202
    assert reply.body["status"] == "running"
    run = reply.body["run_id"]
    assert reply.body["results"] == reply.headers["location"] == RESULTS + run
    results = side.results(run)
    assert results["successful"] == results["downloads"] == len(results["requests"]) == 30
    assert results["bytes"] == 30 * BODY_BYTES
    assert results["success_rate"] == 1
    assert side.look(run)["load_from"] == "service_process"


def test_each_download_has_its_instants_bytes_and_status_and_they_agree(side: HealthSide) -> None:
    results = side.results(side.begin(TINY, clients=30))
    for client, each in enumerate(results["requests"]):
        assert each["client"] == client
        assert 0 <= each["start_ms"] <= each["first_byte_ms"] <= each["end_ms"]
        assert each["latency_ms"] == pytest.approx(each["end_ms"] - each["start_ms"], abs=0.01)
        assert (each["bytes"], each["status"], each["outcome"]) == (BODY_BYTES, 200, "done")
        assert each["end_ms"] <= 1000 * results["total_duration_s"]
    latencies = [each["latency_ms"] for each in results["requests"]]
    assert results["latency"]["min"]["ms"] == min(latencies)
    assert results["latency"]["max"]["ms"] == max(latencies)
    # All are there from the start: the last of three batches waits for two before it, 150 ms each.
    assert max(each["start_ms"] for each in results["requests"]) < min(latencies)
    assert max(latencies) >= 440


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "missing_token"),
        ({"Authorization": "Bearer "}, "missing_token"),
        ({"Authorization": "Basic dXNlcjpwYXNz"}, "missing_token"),
        ({"Authorization": "Bearer wrong"}, "wrong_token"),
        ({"Authorization": "Bearer " + "x" * 5000}, "wrong_token"),
        ({"Authorization": "Bearer \xe4\xf6\xfc"}, "wrong_token"),
    ],
    ids=["none", "empty", "basic", "short", "long", "not ascii"],
)
def test_without_the_token_nothing_starts_and_nothing_is_told(
    side: HealthSide, headers: dict[str, str], code: str
) -> None:
    before = side.ask("GET", "/counted").body
    for method, path, body in (
        ("POST", WORKLOAD, workload("away")),
        ("POST", WORKLOAD, b"no json"),
        ("GET", RESULTS + "0" * 16, None),
    ):
        reply = side.ask(method, path, body, headers)
        assert (reply.status, reply.code) == (401, code)
        assert reply.headers["www-authenticate"] == "Bearer"
        assert side.token not in reply.reason
    assert side.ask("GET", "/counted").body.get("away/main") == before.get("away/main")


def changed(**fields: object) -> dict[str, object]:
    return workload(TINY) | fields


BAD: dict[str, Any] = {
    "no clients": changed(num_clients=0),
    "fewer than none": changed(num_clients=-1),
    "too many": changed(num_clients=501),
    "far too many": changed(num_clients=10**400),
    "a float": changed(num_clients=100.0),
    "a fraction": changed(num_clients=1.5),
    "text": changed(num_clients="100"),
    "true": changed(num_clients=True),
    "null": changed(num_clients=None),
    "not a number": changed(num_clients=float("nan")),
    "infinite": changed(duration_seconds=float("inf")),
    "no time": changed(duration_seconds=0),
    "too long": changed(duration_seconds=3601),
    "a list": changed(duration_seconds=[300]),
    "up": changed(model_id="../secret"),
    "two up": changed(model_id="a/../../b"),
    "dots": changed(model_id=".."),
    "root": changed(model_id="/etc/passwd"),
    "backslash": changed(model_id="a\\b"),
    "encoded": changed(model_id="%2e%2e%2fb"),
    "another host": changed(model_id="//127.0.0.2:9/x"),
    "a query": changed(model_id="a?b=c"),
    "a line end": changed(model_id="a\r\nHost: b"),
    "a line end after": changed(model_id="a\n"),
    "a zero byte": changed(model_id="a\0"),
    "another script": changed(model_id="mod\u00e9le"),
    "too long a name": changed(model_id="a" * 200),
    "no name": changed(model_id=""),
    "a number as name": changed(model_id=7),
    "an unknown field": changed(component="registry"),
    "a host": changed(base_url="http://127.0.0.2"),
    "a field missing": {"num_clients": 1, "model_id": TINY},
    "a list of all": [workload(TINY)],
    "nothing": b"",
    "half": b'{"num_clients": 1,',
    "no utf-8": b'{"num_clients": 1, "model_id": "\xff"}',
    "deep": b'{"num_clients":' + b"[" * 2000,
}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD.keys())
def test_what_is_out_of_bounds_is_refused_and_nothing_starts(side: HealthSide, body: Any) -> None:
    before = side.ask("GET", "/counted").body
    reply = side.ask("POST", WORKLOAD, body)
    assert (reply.status, reply.code) == (422, "bad_request")
    assert 0 < len(reply.reason) <= 400
    assert side.ask("GET", "/counted").body == before


def test_a_body_longer_than_any_workloads_is_not_read(side: HealthSide) -> None:
    reply = side.ask("POST", WORKLOAD, json.dumps(workload(TINY)).encode() + b" " * 5000)
    assert (reply.status, reply.code) == (413, "too_large")


def test_a_reason_names_the_field_and_the_bound_but_not_what_was_sent(side: HealthSide) -> None:
    reply = side.ask("POST", WORKLOAD, changed(num_clients=501, model_id="<b>../</b>"))
    assert "num_clients: Input should be less than or equal to 500" in reply.reason
    assert "model_id" in reply.reason
    assert "<b>" not in reply.reason


def test_a_second_workload_is_refused_and_told_of_the_first(side: HealthSide) -> None:
    run = side.begin("held", clients=2)
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: side.ask("POST", WORKLOAD, workload(TINY)), range(8)))
    assert {(reply.status, reply.code) for reply in replies} == {(409, "workload_running")}
    assert {reply.body["error"]["run_id"] for reply in replies} == {run}
    side.let_go(run)
    assert side.results(side.begin(TINY, clients=1))["successful"] == 1


def test_of_many_that_are_asked_for_at_once_one_starts(side: HealthSide) -> None:
    body = workload("held", clients=2)
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: side.ask("POST", WORKLOAD, body), range(8)))
    assert sorted(reply.status for reply in replies) == [202, *[409] * 7]
    side.let_go(next(reply.body["run_id"] for reply in replies if reply.status == 202))


def test_timeouts_are_bounds_and_what_was_done_counts(side: HealthSide) -> None:
    results = side.results(side.begin("half", clients=6, seconds=3))
    assert (results["successful"], results["timed_out"]) == (3, 3)
    assert results["success_rate"] == 0.5
    assert results["bytes"] == 3 * BODY_BYTES
    latency = results["latency"]
    bounds = {name: latency[name]["at_least"] for name in ("mean", "median", "min", "max")}
    assert bounds == {"mean": True, "median": True, "min": False, "max": True}
    lost = [each for each in results["requests"] if each["outcome"] == "timed_out"]
    assert all(each["status"] is None and each["latency_ms"] >= 2900 for each in lost)


@pytest.mark.parametrize(
    ("model", "outcome", "status", "arrived"),
    [
        ("nobody/knows", "refused", 404, 13),
        ("cut", "broken", 200, BODY_BYTES),
        ("away", "refused", 307, 0),
    ],
)
def test_a_download_that_is_not_whole_is_no_success(
    side: HealthSide, model: str, outcome: str, status: int, arrived: int
) -> None:
    results = side.results(side.begin(model, clients=2))
    assert results["successful"] == results["bytes"] == 0
    assert results["throughput_bytes_per_s"] == results["requests_per_s"] == 0
    for each in results["requests"]:
        assert (each["outcome"], each["status"], each["bytes"]) == (outcome, status, arrived)
    assert results["latency"]["mean"]["ms"] is None
    assert "no download was done" in results["latency"]["mean"]["reason"]


def test_a_redirect_away_from_the_service_is_not_followed(side: HealthSide) -> None:
    with socket.create_server(("127.0.0.1", side.port + 1)) as elsewhere:
        elsewhere.settimeout(0.5)
        side.results(side.begin("away", clients=3))
        with pytest.raises(TimeoutError):
            elsewhere.accept()


def test_all_clients_together_receive_no_more_than_so_many_bytes(side: HealthSide) -> None:
    results = side.results(side.begin(TINY, clients=110))
    assert results["outcomes"]["over_budget"] >= 1
    arrived = results["bytes"] + results["bytes_of_unfinished"]
    assert results["bytes"] <= MOST_BYTES < arrived < MOST_BYTES + 110 * 65_536


def test_it_goes_on_when_who_asked_for_it_is_gone(side: HealthSide) -> None:
    asking = (
        "import http.client, json, sys\n"
        "to = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]))\n"
        "shown = {'Authorization': 'Bearer ' + sys.stdin.read()}\n"
        "to.request('POST', sys.argv[2], sys.argv[3], shown)\n"
        "print(json.loads(to.getresponse().read())['run_id'])\n"
    )
    body = json.dumps(workload(TINY, clients=30))
    done = subprocess.run(
        [sys.executable, "-c", asking, str(side.port), WORKLOAD, body],
        input=side.token, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert side.results(done.stdout.strip())["successful"] == 30


@pytest.mark.parametrize("run", ["0" * 16, "..", "%2e%2e%2fx", "%00", "a" * 3000, "%ff"])
def test_a_run_that_nobody_started_is_unknown(side: HealthSide, run: str) -> None:
    reply = side.ask("GET", RESULTS + run)
    assert reply.status == 404
    assert "detail" in reply.body or reply.code == "unknown_run"


def test_a_thousand_looks_change_nothing(side: HealthSide) -> None:
    run = side.begin("held", clients=4, seconds=60)
    with ThreadPoolExecutor(4) as pool:
        looks = list(pool.map(lambda _: side.look(run), range(1000)))
    assert all(look["run_id"] == run for look in looks)
    assert all("results" not in look for look in looks)
    assert side.let_go(run)["successful"] == 4
    # Those that were timed out before may still be held: then only the server's own tasks are left.
    side.ask("POST", "/release")
    wait_until(lambda: side.ask("GET", "/counted").body["tasks"] < 10, timeout_s=10)


def test_the_last_twenty_runs_are_kept(side: HealthSide) -> None:
    runs = []
    for _ in range(21):
        runs.append(side.begin("nobody", clients=1))
        side.results(runs[-1])
    assert side.ask("GET", RESULTS + runs[0]).code == "unknown_run"
    assert side.ask("GET", RESULTS + runs[1]).status == 200


def test_a_service_that_stops_cancels_the_workload_and_ends(tmp_path: Path) -> None:
    with bench(tmp_path) as side:
        assert side.process is not None
        side.begin("held", clients=20, seconds=600)
        wait_until(lambda: side.ask("GET", "/counted").body.get("held/main") == 20, timeout_s=10)
        side.process.send_signal(signal.SIGTERM)
        # A second for what is under way, then the health side's end; the workload has 600 s.
        side.process.wait(timeout=15)
        assert "Task was destroyed" not in side.log.read_text()
        assert "Unclosed" not in side.log.read_text()
