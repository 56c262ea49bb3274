"""A load that ends before its plan is refused, unless a stop was asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perflab.load.checks.selfcheck import SelfCheck, check
from perflab.load.workload import Burst, ClosedLoop, OpenLoop, Request, Stage, Workload
from tests.load.planted import load_result, scripted


def judged(folder: Path, arrivals: Any, requests: int, **facts: Any) -> SelfCheck:
    work = Workload(request=Request(), arrivals=arrivals)
    done_s = np.linspace(0.4, 0.4 + requests / 100, requests)
    return check(load_result(folder, done_s, **facts), work)


OPEN = OpenLoop(stages=(Stage(rate=100, duration_s=5),))
# Paced users: Little's law is not checked for them.
BY_COUNT = ClosedLoop(users=5, requests=500, pacing_s=0.1)
BY_TIME = ClosedLoop(users=5, duration_s=4, warmup_s=1, pacing_s=0.1)


@pytest.mark.parametrize("arrivals", [OPEN, BY_COUNT, Burst(size=500)])
def test_a_load_of_known_size_is_refused_when_requests_are_missing(
    tmp_path: Path, arrivals: Any
) -> None:
    judgement = judged(tmp_path / "lost", arrivals, 9)
    assert any(
        "500 requests were planned, but 9 were recorded" in reason for reason in judgement.reasons
    )
    judgement = judged(tmp_path / "unsent", arrivals, 9, unsent=491)
    assert any("491 planned requests were never sent" in reason for reason in judgement.reasons)
    assert judged(tmp_path / "whole", arrivals, 500).valid


@pytest.mark.parametrize("arrivals", [BY_TIME, scripted(duration_s=4, warmup_s=1).arrivals])
def test_a_load_of_known_length_is_refused_when_it_ends_early(
    tmp_path: Path, arrivals: Any
) -> None:
    (reason,) = judged(tmp_path / "early", arrivals, 400, lasted_s=3.0).reasons
    assert reason.text == "the load ended after 3 s, but 5 s were planned"
    assert judged(tmp_path / "whole", arrivals, 400, lasted_s=4.951).valid
    failed = judged(tmp_path / "failed", arrivals, 400, lasted_s=3.0, errors={"closed": 50})
    assert {reason.side for reason in failed.reasons} == {"server"}


def test_a_requested_stop_is_no_early_end(tmp_path: Path) -> None:
    judgement = judged(tmp_path, BY_TIME, 400, lasted_s=3.0, stopped="interrupted")
    assert judgement.valid
    assert "the load was ended early: interrupted" in map(str, judgement.warnings)


def test_a_load_that_reached_its_number_of_requests_may_be_over_before_its_time(
    tmp_path: Path,
) -> None:
    both = ClosedLoop(users=5, requests=400, duration_s=60, pacing_s=0.1)
    assert judged(tmp_path / "enough", both, 400, lasted_s=3.0).valid
    assert not judged(tmp_path / "short", both, 399, lasted_s=3.0).valid


def test_requests_without_a_connection_are_the_servers_fault_and_unstarted_ones_the_clients(
    tmp_path: Path,
) -> None:
    waited = judged(tmp_path / "a", OPEN, 500, errors={"unsent": 200})
    (reason,) = waited.reasons
    assert reason.side == "server"
    assert (
        "200 planned requests were never sent: the load reached 60.1/s of the planned 100/s"
        in reason
    )
    late = judged(tmp_path / "b", OPEN, 300, unsent=200)
    assert [reason.side for reason in late.reasons] == ["client"]
