"""``perflab load`` as its users type it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

import perflab as perflab_package
from perflab.errors import TargetRefused
from perflab.paths import project_root

SERVER = project_root() / "tests" / "load" / "server.py"


@pytest.fixture
def server() -> Iterator[tuple[str, int]]:
    child = subprocess.Popen([sys.executable, str(SERVER), "0.002", "good"], stdout=subprocess.PIPE)
    assert child.stdout is not None
    yield f"http://127.0.0.1:{int(child.stdout.readline())}/", child.pid
    os.kill(child.pid, signal.SIGCONT)
    child.kill()
    child.wait()
    child.stdout.close()


def perflab(*words: str, code: int = 0) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", "from perflab.cli import main; main()", "load", *words],
        cwd=project_root(), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def test_json_is_one_object_with_the_promised_fields(server: tuple[str, int]) -> None:
    out, _ = perflab(server[0], "--rate", "500", "-d", "2", "--json")
    shown = json.loads(out)
    assert (shown["requests"], shown["errors"]) == (1000, 0)
    for name in ("response_time_ms", "service_time_ms"):
        assert {"p50", "p90", "p95", "p99", "max"} <= set(shown[name])
        assert 2 <= shown[name]["p50"] <= shown[name]["p99"] <= shown[name]["max"]
    for name in ("generator_lag_ms", "connection_wait_ms"):
        assert {"p50", "p99"} <= set(shown[name])
    assert shown["throughput_rps"] == pytest.approx(500, rel=0.05)
    assert shown["client_cpu_us_per_request"] > 0
    assert isinstance(shown["valid"], bool)
    assert isinstance(shown["warnings"], list)


def test_the_recording_holds_every_request(server: tuple[str, int], tmp_path: Path) -> None:
    folder = tmp_path / "result"
    out, _ = perflab(server[0], "--users", "5", "-n", "300", "--out", str(folder), "--workers", "2")
    assert "300 requests" in out
    table = pd.read_parquet(folder / "requests.parquet")
    assert len(table) == 300
    assert set(table["worker"]) == {0, 1}
    assert (table["phase_app_ms"] == 2).all()
    record = json.loads((folder / "load.json").read_text())
    assert record["workload"]["arrivals"]["users"] == 5
    assert sorted(path.name for path in folder.iterdir()) == ["load.json", "requests.parquet"]
    _, error = perflab(server[0], "--users", "5", "-n", "9", "--out", str(folder), code=1)
    assert "nothing is overwritten" in error


def test_every_problem_is_told_at_once_before_anything_is_sent() -> None:
    _, error = perflab(
        "http://127.0.0.1:9/", "--users", "3", "--rate", "5", "--header", "x", "--objective", "y",
        "--stages", "z", code=1,
    )  # fmt: skip
    for text in ("--header", "--objective", "give one of", "nothing was started"):
        assert text in error
    _, error = perflab("http://example.org/", "--users", "3", code=1)
    assert "--allow-target example.org" in error
    _, error = perflab("http://127.0.0.1:9/", "--users", "3", "--timeout", "-1", code=1)
    assert "--timeout" in error


def test_few_requests_have_no_p99() -> None:
    out, _ = perflab("http://127.0.0.1:9/", "--users", "2", "-n", "20", "--json")
    shown = json.loads(out)
    assert shown["errors_by_class"] == {"connect": 20}
    assert shown["response_time_ms"]["p99"] is None
    assert not shown["valid"]
    perflab("http://127.0.0.1:9/", "--users", "2", "-n", "20", "--strict", code=3)


def test_rows_of_a_data_set_are_sent_in_turn(server: tuple[str, int], tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"id": 1, "text": "a"}\n\n{"id": 2, "text": "b"}\n')
    words = (server[0] + "items/$id", "--users", "1", "-n", "10", "--data", str(rows))
    out, _ = perflab(*words, "--body", '{"v": "$text"}', "--expect-body", "label", "--json")
    assert json.loads(out)["errors"] == 0
    _, error = perflab(*words, "--body", "$nothing", code=1)
    assert "has no 'nothing'" in error


def test_failures_stop_the_load_and_the_data_is_kept() -> None:
    out, _ = perflab(
        "http://127.0.0.1:9/", "--rate", "200", "-d", "20", "--stop-failures", "10", "--json"
    )
    shown = json.loads(out)
    assert 10 <= shown["requests"] < 400
    assert "10 requests failed" in shown["stopped"]


def test_ctrl_c_ends_the_load_in_order(server: tuple[str, int]) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "from perflab.cli import main; main()", "load", server[0],
         "--rate", "100", "-d", "60", "--json"],
        cwd=project_root(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    time.sleep(4)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=20)
    shown = json.loads(out)
    assert child.returncode == 0
    assert shown["stopped"] == "interrupted"
    assert 50 < shown["requests"] < 1000


def test_a_freeze_is_charged_to_the_requests_that_it_kept_waiting(server: tuple[str, int]) -> None:
    url, pid = server
    began = threading.Event()

    def freeze() -> None:
        began.wait()
        time.sleep(4)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.6)
        os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=freeze)
    thread.start()
    began.set()
    out, _ = perflab(url, "--rate", "400", "-d", "6", "--json")
    thread.join()
    shown = json.loads(out)
    assert (shown["requests"], shown["errors"]) == (2400, 0)
    # A tenth of all waited, evenly from 0 to 0.6 s: the true p95 is 300 ms, the true p99 540 ms.
    assert shown["response_time_ms"]["p95"] == pytest.approx(300, rel=0.25)
    assert shown["response_time_ms"]["p99"] == pytest.approx(540, rel=0.15)
    assert shown["service_time_ms"]["max"] >= 500


def test_a_notebook_sends_load_under_the_same_rules(server: tuple[str, int]) -> None:
    shown = perflab_package.send_load(server[0], users=2, requests=50)
    assert (shown["requests"], shown["errors"], shown["failures"]) == (50, 0, [])
    with pytest.raises(TargetRefused, match="allow_targets"):
        perflab_package.send_load("http://example.org/", users=2, requests=50)


def test_capacity_of_a_server_that_answers_one_at_a_time(server: tuple[str, int]) -> None:
    out, progress = perflab(
        server[0], "--users", "1", "-d", "0.5", "--find-capacity", "--objective", "p90<1ms",
        "--json",
    )  # fmt: skip
    found = json.loads(out)
    assert found["low"] == 0
    assert found["limit"] in ("server", "client")
    assert "p90" in progress or found["limit"] == "client"
    _, error = perflab(server[0], "--users", "1", "--find-capacity", code=1)
    assert "needs an --objective" in error
