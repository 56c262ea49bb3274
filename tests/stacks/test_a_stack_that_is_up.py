"""A stack that is up, in both backends: it serves, reloads, and keeps its secrets."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest

from perflab.errors import SettingRefused
from perflab.paths import open_dir
from perflab.stacks.residents import Residents
from perflab.stacks.settings import reported
from perflab.systems.inference.stacks import InferenceParameters, stack
from tests.stacks.asking import infer, pids_of, started

# The first of these tests builds images.
pytestmark = pytest.mark.timeout(600)
# The phases of an answer, and those of a database write.
ALWAYS = ("request", "inference", "answer", "app")
WRITE = ("pool", "execute", "commit", "release")
SMALL = InferenceParameters(workers=1, pool_size=4)


@pytest.fixture(scope="module")
def residents(backend_name: str) -> Iterator[Residents]:
    plans = {
        "on": stack(SMALL, pool_size=50, workers=1),
        "off": stack(SMALL, pool_size=50, workers=1, synchronous_commit="off", round_trip_ms=20.0),
        "other": stack(SMALL, pool_size=50, workers=1, runtime="sklearn"),
    }
    with started(backend_name, plans) as residents:
        yield residents


@pytest.mark.slow
def test_it_serves_and_reloads(residents: Residents) -> None:
    residents.activate("on")
    port = residents.instance("on", "inference").launch.port
    database = residents.database("on")
    assert database is not None
    for path, phases in (
        ("/inferences", {*ALWAYS, "threadpool", *WRITE}),
        ("/inferences_no_db_async", {*ALWAYS}),
    ):
        answer = infer(port, path)
        assert (answer.status, answer.body["label"], set(answer.phases)) == (200, 0, phases)
    assert residents.count("on") == 1
    residents.reset("on")
    assert residents.count("on") == 0

    # A setting of scope reload and the link's delay change between treatments, with an effect.
    residents.activate("off")
    begin = time.monotonic()
    infer(port)
    assert time.monotonic() - begin > 0.055  # three round trips of 20 ms, less timer rounding
    residents.activate("on")
    assert sum(count for *_, count in database.waits()) >= 1

    # A service that the treatment does not use stays awake: it could hold a lock.
    other = residents.idle("on")["inference-2"].launch.port
    assert infer(other).status == 200
    residents.activate("other")
    other = residents.instance("other", "inference").launch.port
    assert infer(other).body["label"] == 0


@pytest.mark.slow
@pytest.mark.promise
def test_listeners_are_on_loopback_only(residents: Residents) -> None:
    ports = {instance.launch.port for instance in residents.active("on").values()}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = [row[1].split(":") for row in rows if row[3] == "0A"]
    hosts = {int(port, 16): host for host, port in listening if int(port, 16) in ports}
    assert hosts == dict.fromkeys(ports, "0100007F")


@pytest.mark.slow
def test_the_password_is_shown_nowhere(residents: Residents, backend_name: str) -> None:
    secret = residents._secret
    residents.activate("on")
    for instance in residents.active("on").values():
        assert secret not in instance.log(500)
        assert secret not in repr(instance.launch)
        assert len(pids_of(instance)) >= 1
        for pid in pids_of(instance):
            for file_name in ("environ", "cmdline"):
                assert secret.encode() not in Path(f"/proc/{pid}/{file_name}").read_bytes()
        if backend_name == "docker":
            facts = instance._container.client.api.inspect_container(instance._container.id)  # type: ignore[attr-defined]
            assert secret not in json.dumps(facts)
    if backend_name == "process":
        for name, takes_secret in (("postgres", True), ("link", False)):
            file = open_dir() / "data" / residents.stack / name / "secret"
            assert file.exists() == takes_secret
            assert not takes_secret or file.stat().st_mode & 0o777 == 0o600
    port = residents.instance("on", "postgres").launch.port
    with pytest.raises(psycopg2.OperationalError, match="password"):
        psycopg2.connect(
            host="127.0.0.1", port=port, user="perflab", dbname="perflab", password="wrong"
        )


@pytest.mark.slow
def test_a_setting_the_service_does_not_have_is_refused(residents: Residents) -> None:
    residents.activate("on")
    database = residents.database("on")
    assert database is not None
    node = residents.plans["on"].node("postgres")
    instance = residents.instance("on", "postgres")
    database.rows("ALTER SYSTEM SET synchronous_commit = 'local'")
    database.rows("SELECT pg_reload_conf()")
    time.sleep(0.3)
    with pytest.raises(SettingRefused, match="synchronous_commit is 'local', wanted 'on'"):
        reported(node, instance, lambda _: database)
    residents.activate("on")
