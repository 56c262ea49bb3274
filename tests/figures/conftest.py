"""Recorded runs of known shape, written through the real store."""

from __future__ import annotations

import pytest

from perflab.recordings import Run, RunWriter
from tests.support.synthetic import ON_AND_OFF, Planted, write_run

# The figures of each recording.
WITHOUT_A_TRIAL = ["effect", "throughput", "latency_ecdf", "time_breakdown", "in_flight"]
OF_REQUESTS = [
    "effect", "throughput", "latency_ecdf", "latency_cpu", "time_breakdown", "core_time",
    "in_flight",
]  # fmt: skip
OF_INFERENCE = [*WITHOUT_A_TRIAL[:-1], "core_time", "in_flight"]
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
    """A study of clients with the factors client and rate; one trial is refused."""
    treatments = [
        Planted({"client": client, "rate": rate}, factor)
        for client, factor in (("lean", 1.0), ("aiohttp", 2.0), ("httpx", 9.0))
        for rate in ("200", "1000", "3000")
    ]
    return write_run(
        tmp_path_factory.mktemp("clients"), treatments=treatments, invalid={(4, 8)},
        experiment="client_overhead",
    )  # fmt: skip


@pytest.fixture(scope="session")
def codecs(tmp_path_factory) -> Run:
    """A study of codecs with two messages and two operations."""
    treatments = [
        Planted(
            {"codec": codec, "operation": operation, "message": message, "bytes": str(size)},
            factor,
            phases={"op": 0.8},
        )
        for codec, factor, size in (("json", 1.0, 132), ("orjson", 2.0, 116), ("protobuf", 2.0, 64))
        for operation in ("serialize", "serialize_values")
        for message in ("published", "batch")
    ]
    return write_run(
        tmp_path_factory.mktemp("codecs"), treatments=treatments, database=False, requests=60,
        experiment="serialization",
    )  # fmt: skip


@pytest.fixture(scope="session")
def copies(tmp_path_factory) -> Run:
    """A check of the lab: copies of one service, slower ones, and an overloaded one."""
    services = [("A1", 1.0), ("A2", 1.0), ("+5%", 0.955), ("+20%", 0.85), ("overload", 9.0)]
    treatments = [
        Planted({"service": level}, ratio, level, {"app": 0.8}) for level, ratio in services
    ]
    return write_run(
        tmp_path_factory.mktemp("copies"), treatments=treatments, experiment="lab_check",
        invalid={(block, 4) for block in range(6)}, database=False, requests=100,
    )  # fmt: skip


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
