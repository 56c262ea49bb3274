"""The inference service for real: Uvicorn workers and a PostgreSQL behind it."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import psycopg2
import pytest
from running import SECRET, Answer, Service, Start, call, wait_until
from wire import CountingProxy

from perflab.systems.inference.service import FEATURES

WRITING = {"psycopg2": "/inferences", "asyncpg": "/inferences_async"}
ENDPOINTS = [*WRITING.values(), "/inferences_no_db", "/inferences_no_db_async"]
GOOD = {"features": list(FEATURES)}


def rows(postgres: Service, statement: str = "SELECT count(*) FROM inferences") -> int:
    connection = psycopg2.connect(
        host="127.0.0.1", port=postgres.port, dbname="perflab", user="perflab", password=SECRET
    )
    with connection.cursor() as cursor:
        cursor.execute(statement)
        row = cursor.fetchone()
    connection.close()
    assert row is not None
    return int(row[0])


def infer(service: Service, path: str, body: object = GOOD) -> Answer:
    return call(service.port, "POST", path, body)


@pytest.fixture(scope="module")
def service(started: Start, postgres: Service) -> Service:
    return started("inference", {"database": postgres.port}, workers=2, pool_size=5)


def test_it_is_healthy_only_when_all_workers_are_ready(service: Service) -> None:
    assert call(service.port, "GET", "/health").body == {"ready": 2, "workers": 2}


def test_it_reports_every_setting_in_force(service: Service) -> None:
    body = call(service.port, "GET", "/settings").body
    version = body["database"].pop("server_version")
    assert re.match(r"\d+\.\d+", version)
    assert body == {
        "runtime": "onnx",
        "workers": 2,
        "pool_size": 5,
        "pool_minconn": "max",
        "pool_per_worker": 2,
        "minimum_per_worker": 2,
        "driver": "both",
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
    answer = infer(service, path)
    assert answer.status == 200
    assert answer.body["label"] == 0
    assert 0.5 <= answer.body["probability"] <= 1
    assert (answer.body["id"] is None) == ("no_db" in path)
    assert set(answer.phases) == phases
    # The phases name all of the application's time: half a millisecond is for what lies between.
    inside = sum(answer.phases.values()) - answer.phases["app"]
    assert answer.phases["app"] - 0.5 <= inside <= answer.phases["app"] + 0.01


@pytest.mark.parametrize("path", WRITING.values())
def test_the_answers_id_is_the_row_it_wrote(service: Service, postgres: Service, path: str) -> None:
    body = infer(service, path).body
    where = f"id = {body['id']} AND label = {body['label']} AND probability = {body['probability']}"
    assert rows(postgres, f"SELECT count(*) FROM inferences WHERE {where}") == 1


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
    before = rows(postgres)
    with ThreadPoolExecutor(24) as threads:
        answers = list(threads.map(lambda _: infer(service, path), range(120)))
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body["id"] for answer in answers}) == 120
    assert rows(postgres) == before + 120


@pytest.mark.parametrize(
    ("driver", "each"),
    [
        ("psycopg2", 3),  # BEGIN, INSERT, COMMIT
        ("asyncpg", 4),  # and the pool's reset
    ],
)
def test_an_insert_costs_so_many_round_trips(
    started: Start, postgres: Service, driver: str, each: int
) -> None:
    with CountingProxy(postgres.port) as wire:
        service = started(
            "inference", {"database": wire.port}, workers=1, pool_size=1, driver=driver
        )
        for _ in range(3):  # the first insert of a connection also prepares the statement
            assert infer(service, WRITING[driver]).status == 200
        before = wire.round_trips
        for _ in range(10):
            infer(service, WRITING[driver])
        wait_until(lambda: wire.round_trips >= before + 10 * each, timeout_s=5)
        time.sleep(0.1)
        assert wire.round_trips - before == 10 * each
        service.instance.stop()


@pytest.mark.parametrize("driver", WRITING)
@pytest.mark.parametrize(("minconn", "kept"), [("max", 3), ("1", 1)])
def test_a_pool_opens_its_minimum_at_the_start(
    started: Start, postgres: Service, driver: str, minconn: str, kept: int
) -> None:
    latest = (
        "SELECT coalesce(extract(epoch FROM max(backend_start)) * 1000000, 0)::bigint "
        "FROM pg_stat_activity"
    )
    before = rows(postgres, latest)
    service = started(
        "inference",
        {"database": postgres.port},
        workers=1,
        pool_size=3,
        driver=driver,
        pool_minconn=minconn,
    )
    opened = (
        f"SELECT count(*) FROM pg_stat_activity WHERE application_name = 'inference-{driver}' "
        f"AND extract(epoch FROM backend_start) * 1000000 > {before}"
    )
    assert rows(postgres, opened) == kept
    service.instance.stop()


def test_a_driver_that_was_not_opened_is_refused_with_a_reason(
    started: Start, postgres: Service
) -> None:
    service = started("inference", {"database": postgres.port}, workers=1, driver="none")
    for driver, path in WRITING.items():
        answer = infer(service, path)
        assert answer.status == 409
        assert driver in answer.body["detail"]
    assert infer(service, "/inferences_no_db").status == 200
    assert "database" not in call(service.port, "GET", "/settings").body


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
