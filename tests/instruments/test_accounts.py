"""What accounts are made of: calls that block, functions of one's own, statements' rows."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import psutil
import pytest
from aiohttp import WSMsgType, web

from perflab.errors import ProfilerFailed
from perflab.host.blocked_threads import CALLS, SLEEP, TIMER, BlockedThreads, blocked_in
from perflab.host.meters import ProcessTreeMeter
from perflab.instruments import functions
from perflab.instruments.accounts import statement_rows, waits
from perflab.instruments.functions import Functions
from perflab.instruments.node_profile import (
    CLOSE,
    NodeProfile,
    call_chains,
    functions_of,
    node_process,
)
from perflab.instruments.py_spy import Profile
from perflab.instruments.py_spy_profiles import own_functions
from tests.stacks.asking import wait_until
from tests.support.children import child

SLEEPER = """
import threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print("up", flush=True)
while True:
    until = time.monotonic() + 0.005
    while time.monotonic() < until:
        pass
    time.sleep(0.015)
"""


def test_a_call_is_known_by_its_number_and_a_timer_by_its_time_out() -> None:
    number = {kind: number for number, kind in CALLS.items()}
    assert blocked_in("running\n") is None
    assert blocked_in(f"{number[SLEEP]} 0x0 0x0 0x7ffe 0x0 0x0 0x0 0x1 0x2") == (SLEEP, 0)
    wait = f"{number[TIMER]} 0x3 0x7f 0x40"
    assert blocked_in(f"{wait} 0xa 0x0 0x0 0x1 0x2") == (TIMER, 10)
    assert blocked_in(f"{wait} 0xffffffff 0x0 0x0 0x1 0x2") is None


def test_a_thread_at_work_that_sleeps_is_seen_and_one_that_only_sleeps_is_not() -> None:
    with child(SLEEPER) as started:
        blocked = BlockedThreads(ProcessTreeMeter(started.pid))
        blocked.start()
        time.sleep(1.2)
        blocked.stop()
    shares = waits(blocked, response_ms=20.0)
    # The other thread sleeps all of the time, and would make it more than 1.
    assert 0.05 < shares[SLEEP] < 1


def frame(name: str, file: str) -> dict[str, str]:
    return {"name": name, "file": file}


def test_a_sample_counts_for_the_innermost_function_of_the_services_own_code() -> None:
    frames = [
        {"name": "process 12:python app.py"},
        frame("<module>", "/srv/x1/app.py"),
        frame("view", "/srv/x1/shop/views.py"),
        frame("view.<locals>.<listcomp>", "/srv/x1/shop/views.py"),
        frame("dumps", "/usr/lib/python3.11/json/__init__.py"),
        frame("run", "/srv/x1/.venv/lib/python3.11/site-packages/uvicorn/main.py"),
        frame("select", "/usr/lib/python3.11/selectors.py"),
    ]
    samples = [[0, 5, 2, 4], [0, 5, 2, 3], [0, 5], [0, 5, 6], [0], [0, 1]]
    text = json.dumps({"shared": {"frames": frames}, "profiles": [{"samples": samples}]})
    assert own_functions(text, "/srv/x1") == {
        ("view (shop/views.py)", "json"): 1, ("view (shop/views.py)", ""): 1,
        ("module uvicorn", ""): 1, ("module app", ""): 1,
    }  # fmt: skip


@pytest.mark.promise
def test_a_chain_that_lost_its_callers_gets_those_it_has_in_whole_chains() -> None:
    frames = [
        frame("<module>", "/srv/x1/app.py"),
        frame("list_items", "/srv/x1/shop.py"),
        frame("create", "/srv/x1/shop.py"),
        frame("dumps", "/usr/lib/python3.11/json/__init__.py"),
        frame("encode", "/usr/lib/python3.11/json/encoder.py"),
        frame("encode", "/usr/lib/python3.11/json/encoder.py"),
        frame("run", "/usr/lib/python3.11/site-packages/gevent/greenlet.py"),
    ]
    whole = [[0, 1, 3, 4], [0, 1, 3, 4], [0, 1, 3, 5], [0, 2, 3, 4], [0, 2, 3]]
    cut = [[4]] * 4 + [[5]] * 4
    foreign = [[6]] * 3
    document = {"shared": {"frames": frames}, "profiles": [{"samples": [*whole, *cut, *foreign]}]}
    assert own_functions(json.dumps(document), "/srv/x1") == {
        ("list_items (shop.py)", "json"): 9, ("create (shop.py)", "json"): 4,
        ("module gevent", ""): 3,
    }  # fmt: skip
    # In another thread nobody calls them.
    document["profiles"] = [{"samples": whole}, {"samples": cut}]
    assert own_functions(json.dumps(document), "/srv/x1")["module json", ""] == 8
    # Callers that come one after the other in time share the cut chains nevertheless.
    document["profiles"] = [{"samples": [[0, 1, 3]] * 50 + [[0, 2, 3]] * 50 + [[3]] * 20}]
    assert own_functions(json.dumps(document), "/srv/x1") == {
        ("list_items (shop.py)", "json"): 60, ("create (shop.py)", "json"): 60,
    }  # fmt: skip
    # A function that calls itself is called last by who called it last.
    document["profiles"] = [{"samples": [[0, 1, 3, 2, 3]] * 40 + [[3]] * 40}]
    assert own_functions(json.dumps(document), "/srv/x1") == {("create (shop.py)", "json"): 80}
    # What hardly anybody calls begins its chains itself.
    document["profiles"] = [{"samples": [[0, 1, 2, 3]] * 99 + [[0, 2, 1, 4]] + [[4]] * 200}]
    assert own_functions(json.dumps(document), "/srv/x1")["module json", ""] == 200


WORK, GUNICORN = ("work (app.py)", ""), ("module gunicorn", "")


@pytest.mark.promise
def test_a_sample_has_the_library_in_which_it_ends_and_no_other() -> None:
    frames = [
        frame("items", "/srv/x1/shop/views.py"),
        frame("users", "/srv/x1/shop/views.py"),
        frame("load", "/usr/lib/python3/dist-packages/yaml/loader.py"),
        frame("__init__", "<string>"),
        frame("f.<locals>.<lambda>.<locals>.<genexpr>", "/srv/x1/app.py"),
        frame("list", "/srv/x1/users/views.py"),
        frame("readinto", "/usr/lib/python3.11/socket.py"),
    ]
    samples = [[0, 2], [1], [1, 3], [4], [0, 5], [0, 2, 5], [6]]
    text = json.dumps({"shared": {"frames": frames}, "profiles": [{"samples": samples}]})
    assert own_functions(text, "/srv/x1") == {
        ("items (shop/views.py)", "yaml"): 1, ("users (shop/views.py)", ""): 2,
        ("f (app.py)", ""): 1, ("list (users/views.py)", ""): 2,
    }  # fmt: skip


@pytest.mark.promise
def test_a_thread_that_only_waited_for_a_core_gets_no_more_than_it_ran() -> None:
    frames = [
        frame("work", "/srv/x1/app.py"),
        frame("accept", "/srv/x1/.venv/lib/python3.11/site-packages/gunicorn/gthread.py"),
        frame("select", "/usr/lib/python3.11/selectors.py"),
    ]
    named = [('Process 7 Thread 11 "pool"', [[0]] * 50), ('Thread 7 "MainThread"', [[1]] * 50)]
    profiles = [{"name": name, "samples": samples} for name, samples in named]
    text = json.dumps({"shared": {"frames": frames}, "profiles": profiles})
    assert own_functions(text, "/srv/x1") == {WORK: 50, GUNICORN: 50}
    ran_ns = {7: 100_000, 11: 900_000}
    assert own_functions(text, "/srv/x1", ran_ns=ran_ns) == {
        WORK: 90, GUNICORN: 10,
    }  # fmt: skip
    # Of a thread that nobody timed nothing is known: samples stay as they are.
    assert own_functions(text, "/srv/x1", ran_ns={11: 5})[GUNICORN] == 50
    # One that began and ended meanwhile has no time; the others share theirs nevertheless.
    frames.append(frame("once", "/srv/x1/app.py"))
    more = [*profiles, {"name": "Process 7 Thread 12", "samples": [[3]] * 20}]
    text = json.dumps({"shared": {"frames": frames}, "profiles": more})
    assert own_functions(text, "/srv/x1", ran_ns=ran_ns) == {
        WORK: 90, GUNICORN: 10, ("once (app.py)", ""): 20,
    }  # fmt: skip
    # No sample of many libraries is lost where each counts for less than one.
    packages = [
        frame("f", f"/srv/x1/.venv/lib/python3.11/site-packages/p{n}/a.py") for n in range(30)
    ]
    many = {"frames": [*frames, *packages]}
    place = len(frames)
    two = [{"name": "Thread 7", "samples": [[0, place + n] for n in range(30)]},
           {"name": "Thread 11", "samples": [[1]] * 30}]  # fmt: skip
    text = json.dumps({"shared": many, "profiles": two})
    counts = own_functions(text, "/srv/x1", ran_ns={7: 20, 11: 80})
    assert sum(n for (name, _), n in counts.items() if name == "work (app.py)") == 12
    # A thread that was only seen to wait has run, too.
    profiles[1]["samples"] = [[2]] * 10
    text = json.dumps({"shared": {"frames": frames}, "profiles": profiles})
    assert own_functions(text, "/srv/x1", ran_ns=ran_ns)["module selectors", ""] == 5
    # Where not all are timed, it is the wait of a thread that may not run at all.
    assert own_functions(text, "/srv/x1", ran_ns={11: 5}) == {WORK: 50}


def test_threads_are_timed_while_their_functions_are_sampled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    profiles = [
        {"name": f"Thread {number}", "samples": [[place]] * 10}
        for place, number in enumerate((1, 2))
    ]
    frames = [frame("one", "/srv/a.py"), frame("two", "/srv/a.py")]
    text = json.dumps({"shared": {"frames": frames}, "profiles": profiles})

    class Profiler:
        def __init__(self, *_: object, **__: object) -> None:
            self.begin = lambda: None

        def collect(self) -> Profile:
            return Profile(pd.DataFrame({"chain": [], "samples": []}, dtype=str), 20, (), text)

    pid = os.getpid()
    # Before, one thread had run for long already.
    readings = [{(pid, 1): (900, 0), (pid, 2): (0, 0)}, {(pid, 1): (910, 0), (pid, 2): (90, 0)}]
    monkeypatch.setattr(functions, "PySpy", Profiler)
    monkeypatch.setattr(functions, "accounts_of", lambda _: readings.pop(0))
    sampler = functions.sampler_of(pid, [pid], 1.0, {})
    sampler.begin()
    by_function, _ = sampler.samples()
    assert by_function == {("one (a.py)", ""): 2, ("two (a.py)", ""): 18}


SERVER = """
const http = require("http");
function digits(n) { return n < 2 ? 1 : digits(n - 1) + digits(n - 2); }
http.createServer((_, answer) => answer.end(String(digits(20))))
  .listen(0, "127.0.0.1", () => console.log("up"));
setInterval(() => digits(28), 5);
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node here")
def test_a_node_is_profiled_by_itself_and_listens_to_nobody_afterwards(tmp_path: Path) -> None:
    (tmp_path / "server.js").write_text(SERVER)
    started = subprocess.Popen(["node", "server.js"], cwd=tmp_path, stdout=subprocess.PIPE)
    try:
        assert started.stdout is not None
        assert started.stdout.readline() == b"up\n"
        node = node_process([os.getpid(), started.pid])
        assert node is not None
        ports = len(node.net_connections("tcp"))
        profile = NodeProfile(node)
        profile.begin()
        time.sleep(0.5)
        counts, chains = profile.samples()
        until = time.monotonic() + 5
        while len(node.net_connections("tcp")) > ports and time.monotonic() < until:
            time.sleep(0.05)
        assert len(node.net_connections("tcp")) == ports
    finally:
        started.kill()
        started.wait()
    assert counts["digits (server.js)", ""] > 0
    assert [chain for chain in chains if chain.endswith("digits (server.js)")]


class Inspector:
    """Node's inspector at the higher of two ports, which begins to listen on a signal.

    It hangs up at the method ``ends_at``, and gives no profile. The service listens at the other
    port. ``asked`` are the methods, and the expressions that it is to evaluate.
    """

    def __init__(self, ends_at: str = "") -> None:
        self._ends_at = ends_at
        self.asked: list[str] = []
        self._ports: list[int] = []
        self._is_open = False

    @property
    def process(self) -> Any:
        """Return the process as psutil has it."""
        return SimpleNamespace(
            send_signal=lambda _: setattr(self, "_is_open", True),
            net_connections=lambda _: self._listening() if self._is_open else [],
            cwd=lambda: "/srv",
        )

    def _listening(self) -> list[Any]:
        status = psutil.CONN_LISTEN
        return [SimpleNamespace(laddr=SimpleNamespace(port=n), status=status) for n in self._ports]

    @contextmanager
    def serving(self) -> Iterator[None]:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        runner = asyncio.run_coroutine_threadsafe(self._start(), loop).result()
        try:
            yield
        finally:
            asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    async def _start(self) -> web.AppRunner:
        app = web.Application()
        app.add_routes([web.get("/json", self._addresses), web.get("/it", self._inspect)])
        runner = web.AppRunner(app)
        await runner.setup()
        for _ in range(2):
            await web.TCPSite(runner, "127.0.0.1", 0).start()
        self._ports = sorted(port for _, port in runner.addresses)
        return runner

    async def _addresses(self, request: web.Request) -> web.Response:
        if request.url.port == self._ports[0]:
            return web.json_response({"of": "the service"})
        address = f"ws://127.0.0.1:{request.url.port}/it"
        return web.json_response([{"webSocketDebuggerUrl": address}])

    async def _inspect(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            assert message.type == WSMsgType.TEXT
            asked = json.loads(message.data)
            self.asked.append(asked["params"].get("expression", asked["method"]))
            # What closes the inspector ends the connection.
            if asked["method"] in (self._ends_at, "Runtime.evaluate"):
                break
            await socket.send_json({"id": asked["id"], "result": {}})
        return socket


def test_the_inspector_is_closed_where_node_gives_no_profile() -> None:
    inspector = Inspector()
    with inspector.serving():
        profile = NodeProfile(inspector.process)
        profile.begin()
        with pytest.raises(ProfilerFailed, match="Node's inspector: 'profile'"):
            profile.samples()
        wait_until(lambda: inspector.asked[-2:] == ["Profiler.stop", CLOSE], timeout_s=10)


def test_an_inspector_that_hangs_up_is_told_as_a_profiler_that_failed() -> None:
    inspector = Inspector(ends_at="Profiler.start")
    with inspector.serving(), pytest.raises(ProfilerFailed, match="Node's inspector: "):
        NodeProfile(inspector.process).begin()
    assert inspector.asked[-1] == "Profiler.start"


def node(number: int, name: str, url: str, *children: int) -> dict[str, object]:
    frame = {"functionName": name, "url": url}
    return {"id": number, "callFrame": frame, "children": [*children]}


def test_a_sample_of_node_counts_for_the_innermost_function_of_the_services_own_code() -> None:
    nodes = [
        node(1, "(root)", "", 2, 5, 6),
        node(2, "view", "file:///srv/x/views.js", 3),
        node(3, "query", "file:///srv/x/node_modules/pg/client.js", 4),
        node(4, "emit", "node:events"),
        node(5, "(idle)", ""),
        node(6, "(garbage collector)", ""),
    ]
    profile = {"nodes": nodes, "samples": [2, 3, 4, 5, 6, 1]}
    view = "view (views.js)"
    assert functions_of(profile, "/srv/x") == {
        (view, ""): 2, (view, "pg"): 1, ("garbage collector", ""): 1,
    }  # fmt: skip
    assert call_chains(profile) == {
        "view (views.js)": 1, "view (views.js);query (pg/client.js)": 1,
        "view (views.js);query (pg/client.js);emit (node:events)": 1, "(garbage collector) ()": 1,
    }  # fmt: skip


def test_a_package_of_a_scope_and_a_folder_with_a_space_are_told() -> None:
    nodes = [
        node(7, "draw", "file:///srv/my%20x/index.js", 8),
        node(8, "", "file:///srv/my%20x/node_modules/@acme/fmt/index.js"),
    ]
    found = functions_of({"nodes": nodes, "samples": [7, 8]}, "/srv/my x")
    assert found == {("draw (index.js)", ""): 1, ("draw (index.js)", "@acme/fmt"): 1}


def test_a_process_that_cannot_be_profiled_gives_a_warning_and_no_error() -> None:
    # No process has this number: the kernel gives smaller ones.
    scene = SimpleNamespace(
        instance=lambda _: SimpleNamespace(
            pid=2**22 - 1, meter=lambda: ProcessTreeMeter(2**22 - 1)
        ),
        workload=SimpleNamespace(bound_s=1.0), labels={},
    )  # fmt: skip
    sensor = Functions(node="app").sensor(scene)
    sensor.begin()
    sensor.end()
    (warning,) = sensor.observe(SimpleNamespace()).warnings
    assert warning.text.startswith("the functions of 'app' are not known: ")


def test_statements_are_told_per_request() -> None:
    rows = list(statement_rows("db", {"SELECT $1": (40.0, 10.0), "never": (0.0, 0.0)}, 20))
    assert rows == [("statement", "db: SELECT $1", 2.0, 0.5)]
