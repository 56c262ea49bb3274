"""The most users held: found by doubling and bisection, and never blamed on the service wrongly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pandas as pd
import pytest

from perflab.recordings import Reason, Run
from perflab.systems.chat.capacity import judged, most_users


class Measured:
    """A run of one trial, as far as the search looks at it."""

    run_id = "planted"

    def __init__(self, *reasons: Reason, **row: Any) -> None:
        good = {"delivery_p90_ms": 50.0, "delivery_p95_ms": 60.0, "delivery_p99_ms": 90.0}
        state = "invalid" if reasons else "valid"
        self._row = {"state": state, "reasons": list(reasons), **good, **row}

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
        return Measured(BUSY)

    found = most_users("json", measure)
    assert (found.limit, found.low) == ("client", 250)
    assert "client is the limit" in found.sentence


CUT = Reason(code="chat.cut", side="server", text="3 WebSockets ended before their users left")
LATE = Reason(code="generator.lag", side="client", text="generator lag p99 30 ms")
OWN = Reason(code="client.failures", side="client", text="2 requests failed on the client's side")
LOST = Reason(code="chat.received", side="server", text="600 messages sent, 590 received")
SLEPT = Reason(code="host.clock_step", text="the machine slept")
WORKER = Reason(code="load.failed", side="client", text="a load worker died (exit status -9)")
DIED = Reason(code="service.failed", side="server", text="service 'chat': it was killed")
BUSY = Reason(code="chat.client_cpu", side="client", text="the client used 97% of a core")


@pytest.mark.parametrize(
    ("reasons", "row", "kind"),
    [
        ([], {}, "held"),
        ([], {"delivery_p99_ms": 1000.1}, "missed"),
        ([], {"delivery_p99_ms": float("nan")}, "unclear"),
        ([], {"delivery_p99_ms": float("nan"), "delivery_p90_ms": 201.0}, "missed"),
        ([CUT], {}, "missed"),
        ([LOST, CUT], {}, "missed"),
        ([LATE], {}, "faults"),
        ([OWN], {}, "faults"),
        ([CUT, LATE], {"delivery_p99_ms": 5000.0}, "faults"),
        ([SLEPT], {"delivery_p99_ms": 5000.0}, "unclear"),
        ([CUT, SLEPT], {}, "unclear"),
        ([DIED], {"state": "failed"}, "missed"),
        ([WORKER], {"state": "failed"}, "faults"),
    ],
)
def test_a_probe_tells_the_services_misses_from_the_clients_faults(
    reasons: list[Reason], row: dict[str, Any], kind: str
) -> None:
    probe = judged(300, cast(Run, Measured(*reasons, **row)))
    found = [name for name in ("missed", "faults", "unclear") if getattr(probe, name)]
    assert found == ([] if kind == "held" else [kind])
