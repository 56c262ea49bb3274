"""The most users held: found by doubling and bisection, and never blamed on the service wrongly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pandas as pd
import pytest

from perflab.experiments.chat.capacity import judged, most_users
from perflab.recordings import Run


class Measured:
    """A run of one trial, as far as the search looks at it."""

    run_id = "planted"

    def __init__(self, **row: Any) -> None:
        good = {"delivery_p90_ms": 50.0, "delivery_p95_ms": 60.0, "delivery_p99_ms": 90.0}
        self._row = {"state": "valid", "reasons": [], **good, **row}

    def trials(self) -> pd.DataFrame:
        return pd.DataFrame([self._row])


def test_the_most_users_within_all_three_targets_are_found() -> None:
    asked: list[Mapping[str, Any]] = []

    def measure(experiment: str, parameters: Mapping[str, Any]) -> Any:
        assert experiment == "chat_ladder"
        asked.append(parameters)
        users = int(parameters["rungs"][0].removeprefix("best_"))
        # The p95 is the first target to be missed, from 701 users on.
        return Measured(delivery_p95_ms=501.0 if users > 700 else 400.0)

    found = most_users("best", measure, start=250, parameters={"plateau_s": 12})
    assert found.limit == "server"
    assert found.low <= 700 < (found.high or 0)
    assert (found.high or 0) / found.low < 1.15
    assert len(asked) < 8
    assert all(each["plateau_s"] == 12 and each["blocks"] == 1 for each in asked)


def test_a_search_ends_where_the_client_is_the_limit() -> None:
    def measure(_: str, parameters: Mapping[str, Any]) -> Any:
        if parameters["rungs"] == ["json_250"]:
            return Measured()
        return Measured(state="invalid", reasons=["the client used 97% of a core"])

    found = most_users("json", measure)
    assert (found.limit, found.low) == ("client", 250)
    assert "client is the limit" in found.sentence


@pytest.mark.parametrize(
    ("row", "missed", "faults"),
    [
        ({"delivery_p99_ms": 1000.1}, 1, 0),
        ({"delivery_p90_ms": float("nan")}, 1, 0),
        ({"state": "failed", "reasons": ["service 'chat' died"]}, 1, 0),
        ({"state": "invalid", "reasons": ["3 WebSockets ended before their users left"]}, 1, 0),
        ({"state": "invalid", "reasons": ["generator lag p99 30 ms"]}, 0, 1),
        ({}, 0, 0),
    ],
)
def test_a_probe_tells_the_services_misses_from_the_clients_faults(
    row: dict[str, Any], missed: int, faults: int
) -> None:
    probe = judged(300, cast(Run, Measured(**row)))
    assert (len(probe.missed), len(probe.faults)) == (missed, faults)
