"""Accept queues of real listeners that overflow; one listener's counts are not another's."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from perflab.host.kernel_counts import QueueSampler

BACKLOG = 2


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    """Open a server that never accepts."""
    with socket.create_server(("127.0.0.1", 0), backlog=BACKLOG) as server:
        yield server


def knock(server: socket.socket, times: int, until: ExitStack) -> None:
    """Try to connect so many times, without a wait."""
    for _ in range(times):
        client = until.enter_context(socket.socket())
        client.setblocking(False)
        client.connect_ex(server.getsockname())


def test_a_full_backlog_is_recorded_from_the_moment_it_is_full(listening) -> None:
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
    # A sample has the instant of its begin, so the last one before may see a part of the overflow.
    before = before.iloc[:-1]
    assert before["drops"].max() == before["waiting"].max() == 0
    assert after["drops"].iloc[-1] >= 3
    assert (after["waiting"].iloc[-1], after["backlog"].iloc[-1]) == (BACKLOG + 1, BACKLOG)
