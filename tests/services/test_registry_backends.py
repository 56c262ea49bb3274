"""The registry's whole stack in both backends."""

from __future__ import annotations

import pytest
from registering import MODELS, SIZE, download
from running import residing

from perflab.systems.registry.stacks import stack

pytestmark = pytest.mark.slow
HANDLERS = ("to_thread", "async")


def test_it_is_filled_and_serves_over_connections_that_the_store_keeps(backend_name: str) -> None:
    plans = {
        handler: stack(
            {"handler": handler, "executor_threads": 33, "pool_connections": 17},
            model_bytes=SIZE,
            models=MODELS,
        )
        for handler in HANDLERS
    }
    with residing(backend_name, plans) as residents:
        for handler in HANDLERS:
            residents.activate(handler)  # compares the settings in force with those wanted
            port = residents.active(handler)["registry"].launch.port
            assert [len(download(port)[2]) for _ in range(2)] == [SIZE, SIZE]
            counted = residents.counts(handler)["registry"]
            assert (counted["completed"], counted["store_created"]) == (2, 1)
