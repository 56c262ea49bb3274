"""The naive client: it counts what it sees, is naive where it says so, and goes nowhere else."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from compiling import ADDRESS, THREAD, with_flags
from naive_loading import METRICS, SLOW_S, OddServer, ask, look, odd_server, run
from running import Service, Start, call, quiet_port, wait_until
from speaking import get, post, speaking

# A compiler under load may need minutes.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

MOST_REQUESTS = 60
CLIENTS = 4


def start_client(started: Start, port: int, **settings: object) -> Service:
    """Start a client that may load one port, under AddressSanitizer."""
    spec = with_flags(*ADDRESS, service="naive_client")
    return started(spec, {"target": port}, max_requests=MOST_REQUESTS, **settings)


@pytest.fixture(scope="module")
def odd() -> Iterator[OddServer]:
    with odd_server() as server:
        yield server


@pytest.fixture(scope="module")
def client(started: Start, odd: OddServer) -> Iterator[Service]:
    service = start_client(started, odd.port)
    yield service
    assert not service.instance.exit_reason(), service.instance.log()


@pytest.fixture(scope="module", params=["off", "on"])
def pair(request: pytest.FixtureRequest, started: Start) -> tuple[str, Service, Service]:
    """A metrics server without or with keep-alive, and a client for it."""
    server = started("metricstream", keep_alive=request.param)
    return request.param, server, start_client(started, server.port)


def counted(server: Service) -> tuple[int, int, int]:
    """Return connections and requests without this one's, and samples stored."""
    found: dict[str, int] = call(server.port, "GET", "/counts").body
    return found["accepted"] - 1, found["requests"] - 1, found["samples_stored"]


def load(client: Service, connection: str, **changes: object) -> Any:
    return run(client.port, path="/metrics", body=METRICS, clients=CLIENTS, connection=connection,
               **changes)  # fmt: skip


def test_with_a_connection_per_request_both_sides_count_the_same(
    pair: tuple[str, Service, Service],
) -> None:
    _, server, client = pair
    call(server.port, "POST", "/reset")
    results = load(client, "per_request")
    assert (results["attempted"], results["answered"], results["hung"]) == (60, 60, 0)
    assert counted(server) == (MOST_REQUESTS, MOST_REQUESTS, MOST_REQUESTS)
    phases = results["phases_ms"]
    assert list(phases) == ["connect", "send", "wait", "receive", "close"]
    assert {phase["n"] for phase in phases.values()} == {MOST_REQUESTS}
    # Latency is from the call to connect: all phases but the close.
    parts = sum(phase["mean"] for phase in phases.values()) - phases["close"]["mean"]
    assert parts == pytest.approx(results["latency_ms"]["mean"], rel=0.05)


def test_one_connection_for_all_requests_hangs_where_the_server_closes(
    pair: tuple[str, Service, Service],
) -> None:
    keep_alive, server, client = pair
    call(server.port, "POST", "/reset")
    began = time.monotonic()
    results = load(client, "persistent", duration_s=1.2, timeout_ms=800)
    took_s = time.monotonic() - began
    assert counted(server) == (CLIENTS, results["answered"], results["answered"])
    assert results["phases_ms"]["connect"]["n"] == CLIENTS
    assert results["phases_ms"]["close"] == {"n": 0, "mean": None}
    if keep_alive == "on":
        assert (results["answered"], results["hung"]) == (MOST_REQUESTS, 0)
        return
    # The first request of each is answered; each further one waits in vain, but not for ever.
    assert results["answered"] == CLIENTS
    assert results["hung"] == results["attempted"] - CLIENTS >= CLIENTS
    errors = results["errors"]
    assert errors["closed_by_server"] + errors["reset"] == results["hung"]
    assert errors["closed_by_server"] >= CLIENTS // 2
    assert 0.8 <= results["total_duration_s"] <= took_s < 12


def test_it_paces_and_times_naively(client: Service) -> None:
    target = 1 / SLOW_S
    results = run(client.port, path="/slow", clients=1, rate=target, duration_s=1.5)
    assert results["answered"] > 3
    seconds, latency = results["total_duration_s"], results["latency_ms"]
    in_requests_s = latency["mean"] * latency["n"] / 1000
    # After each request but the last it sleeps the whole interval, whatever the request took.
    assert (results["answered"] - 1) / target + in_requests_s <= seconds
    assert results["achieved_rate"] == pytest.approx(results["answered"] / seconds)
    assert results["success_rate"] == pytest.approx(results["achieved_rate"] / target)
    # So what it has fallen behind is in none of its latencies.
    assert latency["n"] == results["answered"]
    assert SLOW_S * 1000 <= latency["median"] <= latency["p95"] <= latency["max"]
    assert results["mean_in_flight"] == pytest.approx(in_requests_s / seconds, rel=0.01)


@pytest.mark.parametrize("connection", ["per_request", "persistent"])
@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/busy", "status"),
        ("/silent", "timed_out"),
        ("/reset", "reset"),
        ("/closed", "closed_by_server"),
        ("/short", "short"),
        ("/no_http", "other"),
    ],
)
def test_what_ended_a_request_is_told_apart(
    client: Service, path: str, error: str, connection: str
) -> None:
    # One request per client: a further one would find its connection lost already.
    results = run(
        client.port, path=path, connection=connection, rate=1, duration_s=0.2, timeout_ms=300
    )  # fmt: skip
    assert results["errors"][error] == results["attempted"] == 2
    waits_on = connection == "persistent" and error in ("reset", "closed_by_server", "short")
    assert results["hung"] == (2 if waits_on or error == "timed_out" else 0)
    assert results["latency_ms"] == dict.fromkeys(("mean", "median", "p95", "max")) | {"n": 0}
    assert results["success_rate"] == 0


@pytest.mark.parametrize("path", ["/in_pieces", "/without_length"])
def test_an_answer_is_whole_however_it_comes(client: Service, path: str) -> None:
    results = run(client.port, path=path, rate=20, duration_s=0.3)
    assert results["answered"] == results["attempted"] >= 2
    assert call(client.port, "GET", "/health").status == 200


def test_a_port_on_which_nobody_listens_refuses(started: Start) -> None:
    client = start_client(started, quiet_port())
    results = run(client.port)
    assert results["errors"]["connect_refused"] == results["attempted"] == MOST_REQUESTS
    assert results["success_rate"] is None, "there was no rate to be reached"


REFUSED: dict[str, tuple[dict[str, object], str]] = {
    "another host": ({"target_host": "10.0.0.1"}, "127.0.0.1"),
    "another name of this host": ({"target_host": "localhost"}, "127.0.0.1"),
    "another port": ({"target_port": 5432}, "target_port"),
    "an address as path": ({"path": "http://10.0.0.1/"}, "path"),
    "a second request in the path": ({"path": "/ HTTP/1.1\r\nHost: a\r\n\r\nGET /"}, "path"),
    "no path": ({"path": None}, "path"),
    "no client": ({"clients": 0}, "clients"),
    "half a client": ({"clients": 1.5}, "clients"),
    "too many clients": ({"clients": 257}, "1 to 256"),
    "a negative rate": ({"rate": -1}, "rate"),
    "a rate that never comes": ({"rate": 1e-9}, "rate"),
    "no end": ({"duration_s": 301}, "0.1 to 300"),
    "no duration": ({"duration_s": None}, "duration_s"),
    "no time-out": ({"timeout_ms": 0}, "timeout_ms"),
    "an unknown way to connect": ({"connection": "pooled"}, "persistent"),
    "a number as body": ({"body": 5}, "body"),
    "a field that nobody knows": ({"user": 5}, "unknown field 'user'"),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_what_it_may_not_do_is_refused_with_a_reason(
    client: Service, odd: OddServer, case: str
) -> None:
    changes, word = REFUSED[case]
    before = odd.asked
    refused = ask(client.port, **changes)
    assert (refused.status, refused.body["error"]["code"]) == (422, "bad_request")
    assert word in refused.body["error"]["reason"]
    assert ask(client.port, rate=1, duration_s=0.1).status == 202, "nothing goes on"
    wait_until(lambda: odd.asked == before + 2, timeout_s=10)
    wait_until(lambda: ask(client.port, clients=0).status == 422, timeout_s=10)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1]", "{}x", '{"path": }', '{"path": "\\x"}', '{"path": "\\ud800"}', '{"rate": 01}',
     '{"rate": 1e999}', '{"body": {}}', '{"rate": 1, "rate": 2}', '{"path": "a'],
)  # fmt: skip
def test_what_is_no_flat_object_is_refused(client: Service, text: str) -> None:
    refused = call(client.port, "POST", "/workload", text)
    assert (refused.status, refused.body["error"]["code"]) == (400, "bad_json")


def test_what_is_no_proper_request_is_refused(client: Service) -> None:
    json_type = "Content-Type: application/json"
    asked = {
        405: get("/workload"),
        404: get("/results/of-nobody"),
        415: post(b"{}", path="/workload"),
        413: b"POST /workload HTTP/1.1\r\nHost: a\r\nContent-Length: 65537\r\n\r\n",
        411: b"POST /workload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        431: b"GET / HTTP/1.1\r\nX: " + b"x" * 9000,
        400: post(b"{}", json_type, "Content-Length: 3", path="/workload"),
    }
    for status, text in asked.items():
        with speaking(client.port, text) as speaker:
            reply = speaker.reply()
            assert (reply.status, list(reply.body)) == (status, ["error"])
            assert speaker.is_closed()
    with speaking(client.port, b"nothing") as speaker:
        assert speaker.is_closed(), "who says nothing whole is left after a while"


def test_a_body_goes_as_it_was_asked_for(started: Start) -> None:
    server = started("metricstream")
    client = start_client(started, server.port)
    name = 'a"\\\n\t\u00e9\U0001f600'
    body = METRICS.replace('"a"', json.dumps(name, ensure_ascii=False))
    assert run(client.port, path="/metrics", body=body)["answered"] == MOST_REQUESTS
    assert run(client.port, path="/metrics", body="{")["errors"]["status"] == MOST_REQUESTS


def test_there_is_one_load_at_a_time(client: Service) -> None:
    path = ask(client.port, path="/silent", duration_s=0.2, timeout_ms=1000).body["results"]
    second = ask(client.port)
    assert (second.status, second.body["error"]["code"]) == (409, "workload_running")
    known = look(client.port, path)
    assert known["status"] == "running"
    assert "results" not in known
    assert known["progress"]["answered"] == 0
    assert path.rpartition("/")[2] in second.body["error"]["reason"]
    wait_until(lambda: look(client.port, path)["status"] == "completed", timeout_s=20)
    assert run(client.port)["answered"] == MOST_REQUESTS
    assert look(client.port, path)["results"]["hung"] == 2, "the last ones are kept"


def test_a_load_without_threads_fails_and_says_so(started: Start, odd: OddServer) -> None:
    service = started("naive_client", {"target": odd.port}, max_clients=1000)
    pid = service.instance.pid
    limit = psutil.Process(pid).memory_info().vms + 100 * 1024 * 1024
    resource.prlimit(pid, resource.RLIMIT_AS, (limit, limit))
    path = ask(service.port, path="/silent", clients=500, timeout_ms=60_000).body["results"]
    wait_until(lambda: look(service.port, path)["status"] == "failed", timeout_s=20)
    known = look(service.port, path)
    assert known["problem"]
    assert known["results"]["cancelled"] == known["results"]["attempted"]


@pytest.mark.parametrize("flags", [ADDRESS, THREAD], ids=["address", "thread"])
def test_a_stop_amid_a_load_ends_it_without_a_report(
    started: Start, odd: OddServer, flags: tuple[str, ...]
) -> None:
    service = started(with_flags(*flags, service="naive_client"), {"target": odd.port})
    for connection in ("per_request", "persistent"):
        results = run(service.port, rate=100, connection=connection, duration_s=0.4, timeout_ms=200)
        assert results["answered"] >= 1
    path = ask(service.port, path="/silent", clients=8, timeout_ms=60_000).body["results"]
    wait_until(lambda: look(service.port, path)["progress"]["begun"] == 8, timeout_s=20)
    service.instance._child.send_signal(signal.SIGTERM)
    assert service.wait_ended() == "ended with exit status 0", service.instance.log(200)
    assert "anitizer" not in service.instance.log(200)


def test_settings_in_force_are_told_and_wrong_ones_refused(client: Service) -> None:
    shown = call(client.port, "GET", "/settings").body
    # Nothing but settings: a port is another after every start, and would pass for a change.
    assert shown == dict(client.launch.settings)
    program = Path(str(client.instance._child.args[0]))  # type: ignore[index]
    for word in ("max_clients=0", "max_requests=x", "host=0.0.0.0", "target=10.0.0.1:9000", "a=1"):
        done = subprocess.run([program, word], capture_output=True, text=True, timeout=10)
        assert done.returncode == 2
        assert word.partition("=")[0] in done.stderr
