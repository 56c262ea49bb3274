"""Recorded runs of known shape, written through the real store."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from perflab.recordings import Run, RunWriter
from tests.golden.recordings import CASES, Case, write_recording
from tests.support.synthetic import ON_AND_OFF, write_run

CODECS = Case(
    "serialization",
    parameters={
        "codec": ("json", "orjson", "protobuf"), "message": ("published", "chat"),
        "operation": ("serialize", "serialize_values"),
    },
)  # fmt: skip
# The figures of each recording.
WITHOUT_A_TRIAL = ["effect", "throughput", "latency_ecdf", "time_breakdown"]
OF_REQUESTS = [
    "effect", "throughput", "latency_ecdf", "latency_cpu", "time_breakdown", "core_time",
]  # fmt: skip
OF_INFERENCE = [*WITHOUT_A_TRIAL, "core_time"]
OF_A_DATABASE = [*OF_INFERENCE, "database_waits", "latency_cpu", "flush_cost"]
VIEWS = {
    "normal": OF_A_DATABASE,
    "single": OF_A_DATABASE,
    "no_database": [*OF_INFERENCE, "latency_cpu"],
    "all_failed": [*WITHOUT_A_TRIAL, "latency_cpu"],
    "empty": [*WITHOUT_A_TRIAL, "latency_cpu"],
    "clients": [*OF_REQUESTS, "client_cost"],
    "copies": [*OF_REQUESTS, "known_effects"],
    "codecs": ["effect", "codec_cost"],
}


@pytest.fixture(scope="session")
def normal(tmp_path_factory) -> Run:
    """A run of two treatments and six blocks; one trial is invalid, one failed."""
    return write_run(tmp_path_factory.mktemp("normal"), failed={(2, 0)}, invalid={(4, 1)})


@pytest.fixture(scope="session")
def clients(tmp_path_factory) -> Run:
    """A study of clients with the factors client and rate; a trial is refused, and one failed."""
    return write_recording(tmp_path_factory.mktemp("clients"), "client_overhead/claimed")


@pytest.fixture(scope="session")
def codecs(tmp_path_factory) -> Run:
    """A study of codecs with two messages and two operations."""
    with patch.dict(CASES, {"codecs": CODECS}):
        return write_recording(tmp_path_factory.mktemp("codecs"), "codecs/claimed")


@pytest.fixture(scope="session")
def copies(tmp_path_factory) -> Run:
    """A check of the lab: copies of one service, and slower ones, of which one is refused."""
    return write_recording(tmp_path_factory.mktemp("copies"), "lab_check/spoiled")


@pytest.fixture(scope="session")
def all_failed(tmp_path_factory) -> Run:
    all_trials = {(block, index) for block in range(6) for index in range(2)}
    return write_run(tmp_path_factory.mktemp("failed"), failed=all_trials, state="failed")


@pytest.fixture(scope="session")
def single(tmp_path_factory) -> Run:
    return write_run(tmp_path_factory.mktemp("single"), treatments=ON_AND_OFF[:1], blocks=1)


@pytest.fixture(scope="session")
def no_database(tmp_path_factory) -> Run:
    return write_run(tmp_path_factory.mktemp("nodb"), database=False, requests=100)


@pytest.fixture(scope="session")
def empty(tmp_path_factory) -> Run:
    """A run that was interrupted before its first trial was committed."""
    model = write_run(tmp_path_factory.mktemp("model"), blocks=1, requests=10).record
    root = tmp_path_factory.mktemp("empty")
    return Run(RunWriter.create(root, model.model_copy(update={"state": "interrupted"})).path)
