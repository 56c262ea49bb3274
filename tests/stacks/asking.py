"""Stacks that are up for a test, and requests to their services."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil

from perflab.host.meters import ProcessTable
from perflab.host.placing import placement
from perflab.stacks import cleanup
from perflab.stacks.backend import HOST, Instance
from perflab.stacks.plan import StackPlan
from perflab.stacks.process_backend import choose
from perflab.stacks.residents import Residents
from perflab.systems.inference.stacks import FEATURES


def residents_of(backend_name: str, plans: Mapping[str, StackPlan]) -> Residents:
    """Return residents that are prepared and not started."""
    residents = Residents(choose(backend_name), plans, placement(), f"test-{os.getpid()}")
    residents.prepare()
    return residents


@contextmanager
def started(backend_name: str, plans: Mapping[str, StackPlan]) -> Iterator[Residents]:
    """Have stacks up while the block runs, and check that nothing of them is left."""
    residents = residents_of(backend_name, plans)
    residents.start()
    try:
        yield residents
    finally:
        residents.stop()
    assert cleanup.everything() == []


def pids_of(instance: Instance) -> list[int]:
    return instance.meter().members(ProcessTable())


def wait_until(condition: Callable[[], object], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


def children_running(module: str, pid: int) -> list[psutil.Process]:
    return [child for child in psutil.Process(pid).children() if module in child.cmdline()]


@dataclass(frozen=True)
class Answer:
    """An HTTP answer; ``phases`` are its Server-Timing entries in ms."""

    status: int
    body: Any
    phases: dict[str, float]


def call(port: int, method: str, path: str, body: Any = None) -> Answer:
    """Send a JSON body (a string is sent as it is) and return the answer, errors included."""
    text = body if isinstance(body, str) or body is None else json.dumps(body)
    request = urllib.request.Request(
        f"http://{HOST}:{port}{path}",
        data=None if text is None else text.encode(),
        method=method,
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return _answer(answer.status, answer)
    except urllib.error.HTTPError as error:
        with error:
            return _answer(error.code, error)


def _answer(status: int, answer: Any) -> Answer:
    timing = answer.headers.get("Server-Timing") or ""
    entries = (entry.split(";dur=") for entry in timing.split(", ") if entry)
    return Answer(
        status, json.loads(answer.read()), {name: float(duration) for name, duration in entries}
    )


def infer(port: int, path: str = "/inferences") -> Answer:
    """Send features to the inference service."""
    return call(port, "POST", path, {"features": FEATURES})
