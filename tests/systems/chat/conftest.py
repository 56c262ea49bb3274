"""Recorded runs of crowds, and the same runs without a valid trial."""

from __future__ import annotations

import pytest

from perflab.recordings import Run
from tests.golden.recordings import write_recording


@pytest.fixture(scope="session")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_recording(tmp_path_factory.mktemp("streams"), "latency_cpu/claimed")


@pytest.fixture(scope="session", params=["latency_cpu", "chat_ladder"])
def crowds(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_recording(tmp_path_factory.mktemp("crowds"), f"{request.param}/claimed")


@pytest.fixture(scope="session")
def refused(crowds: Run) -> Run:
    other = Run(crowds.path)
    superseded = list(crowds.trials()["trial_id"])
    other.record = crowds.record.model_copy(update={"superseded": superseded})
    return other
