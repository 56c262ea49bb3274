"""Orders are handed to the hosts that were compared, as long as they are there."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from perflab.cluster.dispatch import Dispatch
from perflab.cluster.order import Order
from perflab.errors import ClusterError
from perflab.sweeps.cells import Cell

CELL = Cell("id", "client_overhead", {}, {}, (), line=1, trials=1)
ORDER = Order("sweep", CELL, 1, goes_on="", store="/store", wait_s=0.0, topic="topic")


class Client:
    """Notes to which workers orders were handed."""

    def __init__(self) -> None:
        self.handed: list[list[str]] = []

    def subscribe_topic(self, *_: Any) -> None:
        pass

    def submit(self, *_: Any, workers: list[str], **__: Any) -> Any:
        self.handed.append(workers)
        return Future()


def test_who_leaves_is_handed_nothing_more() -> None:
    client = Client()
    dispatch = Dispatch(client, {"tcp://a": "one", "tcp://b": "two"}, "topic")
    dispatch.submit(ORDER)
    dispatch.leaves("one")
    assert not dispatch.knows("one")
    dispatch.submit(ORDER)
    assert client.handed == [["tcp://a", "tcp://b"], ["tcp://b"]]


def test_when_all_have_left_nobody_who_came_later_is_handed_anything() -> None:
    client = Client()
    dispatch = Dispatch(client, {"tcp://a": "one"}, "topic")
    dispatch.leaves("one")
    with pytest.raises(ClusterError, match="no worker is left of those that were there at"):
        dispatch.submit(ORDER)
    assert client.handed == []
