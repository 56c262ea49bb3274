"""What accounts are made of: calls that block, functions of one's own, statements' rows."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace

from perflab.host.blocked_threads import CALLS, SLEEP, TIMER, BlockedThreads, blocked_in
from perflab.host.meters import ProcessTreeMeter
from perflab.instruments.accounts import statement_rows, waits
from perflab.instruments.functions import Functions
from perflab.instruments.py_spy import own_functions
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
        "view (shop/views.py)": 2, "module uvicorn": 1, "module app": 1,
    }  # fmt: skip


def test_a_process_that_cannot_be_profiled_gives_a_warning_and_no_error() -> None:
    # No process has this number: the kernel gives smaller ones.
    scene = SimpleNamespace(
        instance=lambda _: SimpleNamespace(pid=2**22 - 1),
        workload=SimpleNamespace(bound_s=1.0), labels={},
    )  # fmt: skip
    look = Functions(node="app").look(scene)
    look.begin()
    look.end()
    (warning,) = look.observe(SimpleNamespace()).warnings
    assert warning.text.startswith("the functions of 'app' are not known: py-spy")


def test_statements_are_told_per_request() -> None:
    rows = list(statement_rows("db", {"SELECT $1": (40.0, 10.0), "never": (0.0, 0.0)}, 20))
    assert rows == [("statement", "db: SELECT $1", 2.0, 0.5)]
