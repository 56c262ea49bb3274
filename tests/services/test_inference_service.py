"""The inference service for real: Uvicorn workers and a PostgreSQL behind it."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from running import Answer, Service, Start, call, value_of

from perflab.systems.inference.stacks import FEATURES

WRITING = {"psycopg2": "/inferences", "asyncpg": "/inferences_async"}
ENDPOINTS = [*WRITING.values(), "/inferences_no_db", "/inferences_no_db_async"]
COUNT = "SELECT count(*) FROM inferences"
GOOD = {"features": list(FEATURES)}


def infer(service: Service, path: str, body: object = GOOD) -> Answer:
    return call(service.port, "POST", path, body)


@pytest.fixture(scope="module")
def service(started: Start, postgres: Service) -> Service:
    return started("inference", {"database": postgres.port}, workers=2, pool_size=5)


def test_it_reports_all_workers_and_every_setting_in_force(service: Service) -> None:
    assert call(service.port, "GET", "/health").body == {"ready": 2, "workers": 2}
    body = call(service.port, "GET", "/settings").body
    version = body["database"].pop("server_version")
    assert re.match(r"\d+\.\d+", version)
    assert body == {
        "runtime": "onnx",
        "workers": 2,
        "pool_size": 5,
        "pool_minconn": "max",
        "database": {"synchronous_commit": "on"},
    }


OF_ALL = {"request", "inference", "answer", "app"}
OF_WRITES = {"pool", "execute", "commit", "release"}


@pytest.mark.parametrize(
    ("path", "phases"),
    [
        ("/inferences", {"threadpool", *OF_ALL, *OF_WRITES}),
        ("/inferences_async", {*OF_ALL, *OF_WRITES}),
        ("/inferences_no_db", {"threadpool", *OF_ALL}),
        ("/inferences_no_db_async", OF_ALL),
    ],
)
def test_an_endpoint_answers_and_times_its_phases(
    service: Service, path: str, phases: set[str]
) -> None:
    answers = [infer(service, path) for _ in range(10)]
    unnamed = []
    for answer in answers:
        assert answer.status == 200
        assert answer.body["label"] == 0
        assert 0.5 <= answer.body["probability"] <= 1
        assert (answer.body["id"] is None) == ("no_db" in path)
        assert set(answer.phases) == phases
        named = sum(answer.phases.values()) - answer.phases["app"]
        unnamed.append(answer.phases["app"] - named)
    # The phases name all of the application's time. What lies between two of them takes less than
    # half a millisecond; a busy machine may add to it in one answer, though not in all ten.
    assert -0.01 <= min(unnamed) < 0.5


@pytest.mark.parametrize("path", WRITING.values())
def test_the_answers_id_is_the_row_it_wrote(service: Service, postgres: Service, path: str) -> None:
    body = infer(service, path).body
    where = f"id = {body['id']} AND label = {body['label']} AND probability = {body['probability']}"
    assert value_of(postgres, f"{COUNT} WHERE {where}") == 1


@pytest.mark.parametrize("path", ENDPOINTS)
def test_a_wrong_body_is_refused(service: Service, path: str) -> None:
    for body in (
        {"features": [1.0] * 29},
        {"features": [1e300, *FEATURES[1:]]},
        {"features": ["1.0", *FEATURES[1:]]},
        '{"features": [' + ", ".join(["NaN"] * 30) + "]}",
        {**GOOD, "model": "other"},
        "no json",
    ):
        answer = infer(service, path, body)
        assert answer.status == 422
        assert answer.body["detail"][0]["msg"]


@pytest.mark.parametrize("path", WRITING.values())
def test_more_requests_than_connections_wait_and_all_succeed(
    service: Service, postgres: Service, path: str
) -> None:
    before = value_of(postgres, COUNT)
    with ThreadPoolExecutor(24) as threads:
        answers = list(threads.map(lambda _: infer(service, path), range(120)))
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body["id"] for answer in answers}) == 120
    assert value_of(postgres, COUNT) == before + 120


@pytest.mark.usefixtures("service")
def test_both_pools_open_their_minimum_at_the_start(started: Start, postgres: Service) -> None:
    settings = {"workers": 1, "pool_size": 3, "pool_minconn": "1"}
    other = started("inference", {"database": postgres.port}, **settings)
    for driver in WRITING:
        of_driver = f"pg_stat_activity WHERE application_name = 'inference-{driver}'"
        # The workers of the first service keep 3 and 2, the other keeps one.
        assert value_of(postgres, f"SELECT count(*) FROM {of_driver}") == 3 + 2 + 1
    other.instance.stop()


@pytest.mark.slow
def test_workers_that_did_not_run_for_long_are_not_replaced(service: Service) -> None:
    def workers() -> list[psutil.Process]:
        return [
            child
            for supervisor in psutil.Process().children()
            if str(service.port) in supervisor.cmdline()
            for child in supervisor.children()
            if "spawn_main" in " ".join(child.cmdline())
        ]

    before = workers()
    assert len(before) == 2
    for worker in before:
        worker.suspend()
    time.sleep(6)  # Uvicorn's own patience is 5 s
    for worker in before:
        worker.resume()
    time.sleep(1)
    assert workers() == before
    assert call(service.port, "GET", "/health").status == 200
