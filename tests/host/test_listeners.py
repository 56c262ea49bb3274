"""Accept queues: real listeners that overflow, and who is told from whom."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from perflab.host.kernel_counts import Listener, QueueSampler, listeners

BACKLOG = 2


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    """A server that never accepts."""
    with socket.create_server(("127.0.0.1", 0), backlog=BACKLOG) as server:
        yield server


def knock(server: socket.socket, times: int, until: ExitStack) -> None:
    """Try to connect so often, and wait for none."""
    for _ in range(times):
        client = until.enter_context(socket.socket())
        client.setblocking(False)
        client.connect_ex(server.getsockname())


def of(server: socket.socket) -> Listener:
    port = server.getsockname()[1]
    (found,) = [one for one in listeners() if one.port == port]
    return found


def test_a_listener_tells_of_its_own_queue_and_of_nobody_elses(listening) -> None:
    assert of(listening) == Listener(listening.getsockname()[1], 0, BACKLOG, 0)
    with socket.create_server(("127.0.0.1", 0), backlog=BACKLOG) as other, ExitStack() as until:
        knock(listening, BACKLOG + 4, until)
        assert of(listening).waiting == BACKLOG + 1
        assert of(listening).drops >= 3
        assert (of(other).waiting, of(other).drops) == (0, 0)


def test_a_full_backlog_is_in_the_record_from_the_moment_on_it_is_full(listening) -> None:
    sampler = QueueSampler({"shop": listening.getsockname()[1]})
    sampler.start()
    with ExitStack() as until:
        stranger = until.enter_context(socket.create_server(("127.0.0.1", 0), backlog=BACKLOG))
        knock(stranger, BACKLOG + 4, until)
        time.sleep(0.2)
        full_ns = time.monotonic_ns()
        knock(listening, BACKLOG + 4, until)
        time.sleep(0.2)
        sampler.stop()
    queues = sampler.table()
    assert set(queues["service"]) == {"shop"}
    before, after = queues[queues["t_ns"] < full_ns], queues[queues["t_ns"] >= full_ns]
    # A look has the instant at which it begins: what filled up meanwhile, the last may see.
    before = before.iloc[:-1]
    assert before["drops"].max() == before["waiting"].max() == 0
    assert after["drops"].iloc[-1] >= 3
    assert after["waiting"].iloc[-1] == BACKLOG + 1
