"""A store that the user named (``also``) is no noise: its CPU is the service's, its risk told."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perflab import api
from perflab.analysis.evaluation import evaluate
from perflab.reports.duel_notes import notes
from perflab.reports.duel_pairs import pairs_of
from perflab.reports.duels import beside_the_answer
from perflab.systems.custom import stores
from perflab.systems.custom.stores import SharedStores

# It works 5 ms for each request, in a child, as databases do.
STORE = """
import os, socket, sys, time

listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
if os.fork():
    os.wait()
while True:
    line = listening.accept()[0]
    began = time.process_time()
    while time.process_time() - began < 0.005:
        pass
    line.sendall(b"row")
    line.close()
"""
SERVICE = """
import os, socket, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Answer(BaseHTTPRequestHandler):
    protocol_version, wbufsize = "HTTP/1.1", -1

    def do_GET(self):
        port = int(os.environ["CACHE_URL"].rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as line:
            row = line.recv(3)
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(row)

    def log_message(self, *_):
        pass

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[str]:
    """The address of a store of the user's own."""
    (tmp_path / "store.py").write_text(STORE)
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    child = subprocess.Popen(
        [sys.executable, str(tmp_path / "store.py"), str(port)], start_new_session=True
    )
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            time.sleep(0.1)
    yield f"127.0.0.1:{port}"
    subprocess.run(["kill", "--", f"-{child.pid}"], check=True)
    child.wait()


@pytest.mark.promise
def test_a_store_named_without_a_port_is_told_as_unknown_and_fails_no_trial() -> None:
    nothing: Any = None
    sensor = SharedStores(addresses=("127.0.0.1",)).sensor(nothing)
    sensor.before()
    assert sensor.meters() == {}
    (warning,) = sensor.observe(nothing).warnings
    assert warning.text.startswith("who listens at 127.0.0.1 is not known here")


@pytest.mark.promise
@pytest.mark.parametrize("program", ["docker-proxy", "ssh", "passt.avx2"])
def test_a_forwarder_is_not_taken_for_the_store_behind_it(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "owners", lambda _ports: {7, None})
    monkeypatch.setattr(stores, "program_name", {7: program}.__getitem__)
    nothing: Any = None
    sensor = SharedStores(addresses=("127.0.0.1:5432",)).sensor(nothing)
    sensor.before()
    assert sensor.meters() == {}
    (warning,) = sensor.observe(nothing).warnings
    assert warning.text.startswith("who listens at 127.0.0.1:5432 is not known here: its CPU")


@pytest.mark.slow
@pytest.mark.promise
@pytest.mark.parametrize("design", ["trials", "slices"])
def test_the_cpu_of_a_named_store_is_the_services_and_the_risk_stands_beside_the_answer(
    store: str, tmp_path: Path, design: str
) -> None:
    (tmp_path / "app.py").write_text(SERVICE)
    start = f"command:{sys.executable} app.py {{port}}"
    values = {
        "variants": [f"old={start}", f"new={start} x"], "folder": str(tmp_path), "blocks": 1,
        "env": [f"CACHE_URL=redis://{store}"], "also": [store], "users": 1, "duration_s": 0.6,
        "warmup_s": 0.2, "design": design,
    }  # fmt: skip
    run = api.run("custom_service", values)
    trials = run.trials()
    assert (trials["service_cpu_us_per_request"] > 5_000).all(), trials["reasons"].tolist()
    assert (trials[f"cpu_share_shared {store}"] > 0.05).all()
    pairs = pairs_of(evaluate(run), (), ())
    (told,) = beside_the_answer(run, pairs)
    assert told.startswith(f"{store}: the lab did not start this store; all variants share it")
    assert not any(store in line for line in notes(run, pairs)), "it is told once"
