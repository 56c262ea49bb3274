"""Links in a stack: between any two services, with limits that are checked, reported and kept."""

from __future__ import annotations

import math
import socket
import time
from functools import partial

import pytest
from pydantic import ValidationError

from perflab.errors import StackError
from perflab.stacks.plan import Link, Node, StackPlan
from perflab.stacks.spec import load_service
from tests.stacks.asking import started

BODY_BYTES = 1_000_000
ECHO = Node(name="echo", service="echo", settings={"body_bytes": BODY_BYTES})


@pytest.mark.parametrize("value", [0, 999, 1e10, math.nan, "fast", None], ids=str)
def test_a_wrong_limit_is_refused_before_anything_starts(value: object) -> None:
    with pytest.raises(StackError, match=r"bytes_per_s = .* must be .*, or 'unlimited'"):
        load_service("link").resolve({"bytes_per_s": value})  # type: ignore[dict-item]
    with pytest.raises(ValidationError, match="bytes_per_s"):
        Link.model_validate({"bytes_per_s": value})


def test_experiments_and_service_allow_the_same_limits() -> None:
    described = Link.model_json_schema()["properties"]
    for name, setting in load_service("link").settings.items():
        field = described[name]
        number = field["anyOf"][0] if "anyOf" in field else field
        assert (number["minimum"], number["maximum"]) == (setting.minimum, setting.maximum)
        assert field["default"] == setting.default


LIMITS = {
    "each": Link(bytes_per_s=500_000, round_trip_ms=20),
    "free": Link(),
}


def ask(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.sendall(b"GET / HTTP/1.1\r\nHost: it\r\nConnection: close\r\n\r\n")
    return connection


def read_all(connections: list[socket.socket]) -> float:
    """Read what every connection has; return the seconds that it took."""
    begin = time.perf_counter()
    for connection in connections:
        pieces = iter(partial(connection.recv, 1 << 20), b"")
        assert sum(map(len, pieces)) > BODY_BYTES
        connection.close()
    return time.perf_counter() - begin


@pytest.mark.slow
@pytest.mark.alone
def test_the_limits_of_a_treatment_hold_and_are_recorded(backend_name: str) -> None:
    plans = {name: StackPlan(nodes=(ECHO, link.node("echo"))) for name, link in LIMITS.items()}
    with started(backend_name, plans) as linked:
        # Bodies at the limit of each connection take two seconds, however many they are.
        for name, bodies in (("each", 2), ("free", 1)):
            linked.activate(name)
            assert linked.reported[name]["link"] == LIMITS[name].model_dump()
            port = linked.instance(name, "link").launch.port
            seconds = [read_all([ask(port) for _ in range(bodies)]) for _ in range(2)]
            # A machine that stood still makes it longer, nothing makes it shorter.
            assert 1.94 <= min(seconds) < 2.6 or (name == "free" and min(seconds) < 1.0)
