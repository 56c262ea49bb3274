"""Services as data, in both backends, for real."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg2
import pytest

from perflab.errors import RunInterrupted, ServiceFailed, SettingRefused, StackError
from perflab.host.placing import placement
from perflab.paths import open_dir, project_root, services_dir, state_dir
from perflab.sampling.meters import ProcessTable
from perflab.stacks import leftovers
from perflab.stacks.choice import choose
from perflab.stacks.plan import settle
from perflab.stacks.residents import Residents
from perflab.stacks.settings_in_force import reported
from perflab.stacks.spec import load_service, render, service_names
from perflab.systems.inference.service import FEATURES, InferenceParameters, stack

SMALL = InferenceParameters(workers=1, pool_size=4)


def plans(**levels: object) -> dict[str, object]:
    return {"it": stack(SMALL, workers=1, **levels)}  # type: ignore[arg-type]


@pytest.fixture
def residents(backend_name: str) -> Iterator[Residents]:
    made = Residents(
        choose(backend_name),
        {
            "on": stack(SMALL, workers=1),
            "off": stack(SMALL, workers=1, synchronous_commit="off", round_trip_ms=20.0),
            "other": stack(SMALL, workers=1, runtime="sklearn"),
        },
        placement(),
        f"test-{os.getpid()}",
    )
    made.prepare()
    made.start()
    yield made
    made.stop()
    assert leftovers.everything() == []


def post(port: int, path: str, features: object = FEATURES) -> tuple[int, dict[str, object], str]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}",
        data=json.dumps({"features": features}).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.loads(answer.read()), answer.headers["Server-Timing"]
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read()), ""


def test_every_service_description_can_be_read() -> None:
    assert service_names() == ["chat", "echo", "inference", "link", "postgres"]
    for name in service_names():
        spec = load_service(name)
        assert spec.resolve({})
        assert (services_dir() / name / "Dockerfile").exists()


def test_wrong_settings_are_all_named() -> None:
    with pytest.raises(StackError, match=r"did you mean 'workers'.*runtime = 'onxn' must be one"):
        load_service("inference").resolve({"worker": 1, "runtime": "onxn"})


def test_a_placeholder_without_value_is_an_error() -> None:
    with pytest.raises(StackError, match="no value"):
        render("{nothing}", {})


def test_treatments_share_what_does_not_differ_at_start() -> None:
    found = settle(
        {
            "on": stack(SMALL, workers=1),
            "off": stack(SMALL, workers=1, synchronous_commit="off"),
            "sklearn": stack(SMALL, workers=1, runtime="sklearn"),
        }
    )
    assert [resident.name for resident in found.residents] == [
        "postgres",
        "link",
        "inference",
        "inference-2",
    ]
    assert found.serving["sklearn"]["inference"] == "inference-2"
    assert found.serving["sklearn"]["link"] == found.serving["on"]["link"]


@pytest.mark.slow
def test_a_stack_serves_pauses_reloads_and_leaves_nothing(residents: Residents) -> None:
    residents.activate("on")
    port = residents.instance("on", "inference").launch.port
    database = residents.database("on")
    assert database is not None
    for path, phases in (
        ("/inferences", {"threadpool", "inference", "pool", "execute", "commit", "app"}),
        ("/inferences_async", {"inference", "pool", "execute", "commit", "app"}),
        ("/inferences_no_db", {"threadpool", "inference", "app"}),
        ("/inferences_no_db_async", {"inference", "app"}),
    ):
        status, body, timing = post(port, path)
        assert status == 200
        assert body["label"] == 0
        assert {part.split(";")[0].strip() for part in timing.split(",")} == phases
    assert residents.count("on") == 2
    residents.reset("on")
    assert residents.count("on") == 0
    for wrong in ([1.0] * 29, [*FEATURES[:29], "x"], None):
        assert post(port, "/inferences", wrong)[0] == 422

    # A reload-scope setting and the link's delay change between treatments, and show.
    residents.activate("off")
    begin = time.monotonic()
    post(port, "/inferences")
    assert time.monotonic() - begin > 0.055  # three round trips of 20 ms, less timer rounding
    residents.activate("on")
    assert sum(count for *_, count in database.waits()) >= 1

    # What is not under test is paused, and uses no CPU.
    idle = residents.idle("on")["inference-2"]
    before = idle.meter().read(ProcessTable())
    time.sleep(0.5)
    after = idle.meter().read(ProcessTable())
    assert before is not None
    assert after is not None
    assert after.cpu_ns == before.cpu_ns
    residents.activate("other")
    other = residents.instance("other", "inference").launch.port
    assert post(other, "/inferences")[1]["label"] == 0


@pytest.mark.slow
def test_listeners_are_on_loopback_only(residents: Residents) -> None:
    listening = subprocess.run(["cat", "/proc/net/tcp"], capture_output=True, text=True).stdout
    ports = {instance.launch.port for instance in residents.active("on").values()}
    seen = set()
    for line in listening.splitlines()[1:]:
        address, state = line.split()[1], line.split()[3]
        host, port = address.split(":")
        if state == "0A" and int(port, 16) in ports:
            seen.add(int(port, 16))
            assert host == "0100007F"
    assert seen == ports


@pytest.mark.slow
def test_a_dead_service_is_named_with_its_log(residents: Residents) -> None:
    residents.activate("on")
    instance = residents.instance("on", "postgres")
    assert residents.lost("on") == {}
    (checkpointer,) = [
        pid for pid in instance.pids() if "checkpointer" in " ".join(psutil.Process(pid).cmdline())
    ]
    os.kill(checkpointer, signal.SIGKILL)
    wait_until(lambda: residents.lost("on"))
    assert f"process {checkpointer} (postgres: checkpointer" in residents.lost("on")["postgres"]
    assert set(residents.lost("on")) == {"postgres"}
    with pytest.raises(ServiceFailed, match=f"'postgres': lost process {checkpointer}"):
        residents.activate("on")
    kill_service(instance)
    wait_until(instance.exit_reason)
    with pytest.raises(ServiceFailed, match=r"'postgres': .*was ended by SIGKILL"):
        residents.check_alive("on")
    port = residents.instance("on", "inference").launch.port
    status, body, _ = post(port, "/inferences")
    assert status == 503
    assert "database" in str(body["detail"])


def wait_until(condition: Callable[[], object], timeout_s: float = 15.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


def kill_service(instance: object) -> None:
    child = getattr(instance, "_child", None)
    if child is not None:
        os.kill(child.pid, signal.SIGKILL)
    else:
        instance._container.kill()  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_service_that_dies_while_starting_tells_why() -> None:
    broken = Residents(choose("process"), plans(), placement(), "broken")  # type: ignore[arg-type]
    broken.prepare()
    artifacts = next(Path(os.environ["PERFLAB_STATE"], "artifacts").glob("inference-*"))
    hidden = artifacts / "model.onnx"
    hidden.rename(artifacts / "hidden")
    try:
        with pytest.raises(ServiceFailed, match=r"model\.onnx"):
            broken.start()
    finally:
        (artifacts / "hidden").rename(hidden)
    assert leftovers.everything() == []


@pytest.mark.slow
def test_a_dependency_that_dies_while_others_start_is_named_at_once() -> None:
    told: list[str] = []
    killed_at = 0.0

    def kill_the_database(text: str) -> None:
        nonlocal killed_at
        told.append(text)
        if text == "starting inference":
            kill_service(starting._instances["postgres"])
            killed_at = time.monotonic()

    starting = Residents(
        choose("process"),
        plans(),
        placement(),
        "blamed",
        tell=kill_the_database,  # type: ignore[arg-type]
    )
    starting.prepare()
    with pytest.raises(ServiceFailed, match="'postgres': was ended by SIGKILL"):
        starting.start()
    assert time.monotonic() - killed_at < 15
    assert leftovers.everything() == []


@pytest.mark.slow
def test_who_wants_to_end_is_heard_while_services_start() -> None:
    asked_at = 0.0

    def ask_to_end() -> str:
        nonlocal asked_at
        if "link" not in starting._instances:
            return ""
        asked_at = asked_at or time.monotonic()
        return "enough"

    starting = Residents(
        choose("process"),
        plans(),
        placement(),
        "heard",
        interrupted=ask_to_end,  # type: ignore[arg-type]
    )
    starting.prepare()
    with pytest.raises(RunInterrupted, match="interrupted while services started: enough"):
        starting.start()
    assert time.monotonic() - asked_at < 15
    assert leftovers.everything() == []
    with pytest.raises(RunInterrupted, match="before services started"):
        Residents(
            choose("process"),
            plans(),
            placement(),
            "heard",
            interrupted=lambda: "enough",  # type: ignore[arg-type]
        ).prepare()


OWNER = """
import os, sys, time
from perflab.systems.inference.service import InferenceParameters, stack
from perflab.host.placing import placement
from perflab.stacks.choice import choose
from perflab.stacks.reaper import Reapers
from perflab.stacks.residents import Residents
stack_name = "-".join(["orphan", *sys.argv[1:]])
reapers = Reapers(stack_name) if sys.argv[2] == "reaper" else None
plan = stack(InferenceParameters(workers=1, pool_size=4), workers=1)
residents = Residents(choose(sys.argv[1]), {"it": plan}, placement(), stack_name)
residents.prepare()
residents.start()
print("up", flush=True)
time.sleep(120)
"""


@pytest.mark.slow
@pytest.mark.parametrize("guard", ["reaper", "none"])
def test_after_sigkill_the_reaper_or_down_removes_everything(backend_name: str, guard: str) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, backend_name, guard],
        stdout=subprocess.PIPE,
        cwd=project_root(),
        start_new_session=True,
    )
    assert owner.stdout is not None
    try:
        assert owner.stdout.readline() == b"up\n"
        assert len(leftovers.everything()) == 3
    finally:
        # One reaper goes with its owner: the other is enough.
        for reaper in reapers_of(owner.pid)[:1]:
            reaper.kill()
        owner.kill()
        owner.wait()
        owner.stdout.close()
    if guard == "none":
        assert len(leftovers.everything()) == 3
        leftovers.remove_of_kind("run")
        assert leftovers.everything() == []
        return
    folder = state_dir() / "stacks" / f"orphan-{backend_name}-{guard}"
    wait_until(lambda: leftovers.everything() == [] and not folder.exists())


def reapers_of(pid: int) -> list[psutil.Process]:
    children = psutil.Process(pid).children()
    return [child for child in children if "perflab.stacks.reaper" in child.cmdline()]


@pytest.mark.slow
def test_the_password_is_shown_nowhere(residents: Residents, backend_name: str) -> None:
    secret = residents._launcher.secret
    residents.activate("on")
    for instance in residents.active("on").values():
        assert secret not in instance.log(500)
        assert secret not in repr(instance.launch)
        assert len(instance.pids()) >= 1
        for pid in instance.pids():
            for shown in ("environ", "cmdline"):
                assert secret.encode() not in Path(f"/proc/{pid}/{shown}").read_bytes()
        if backend_name == "docker":
            seen = instance._container.client.api.inspect_container(instance._container.id)  # type: ignore[attr-defined]
            assert secret not in json.dumps(seen)
    if backend_name == "process":
        for name, own in (("postgres", True), ("link", False)):
            file = open_dir() / "data" / f"test-{os.getpid()}" / name / "secret"
            assert file.exists() == own
            assert not own or file.stat().st_mode & 0o777 == 0o600
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
    assert residents.reported["on"]["postgres"] == {
        "max_connections": "220",
        "shared_buffers_mb": 128,
        "synchronous_commit": "on",
        "commit_delay_us": "0",
        "commit_siblings": "5",
    }
    assert residents.reported["on"]["link"] == {"round_trip_ms": 0.0}
    assert residents.reported["on"]["inference"]["pool_size"] == 4


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.parametrize("backend_name", ["docker"])
def test_containers_have_no_privileges_and_a_limit_on_processes(residents: Residents) -> None:
    for instance in residents.active("on").values():
        pids = instance.pids()
        assert instance.pid in pids
        for pid in pids:
            status = Path(f"/proc/{pid}/status").read_text()
            facts = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
            assert {facts[name] for name in ("CapEff", "CapPrm", "CapBnd")} == {"0" * 16}
            assert facts["NoNewPrivs"] == "1"
            assert set(facts["Uid"].split()) == {"65534"}
        seen = instance._container.client.api.inspect_container(instance._container.id)  # type: ignore[attr-defined]
        assert 0 < seen["HostConfig"]["PidsLimit"] <= 4096
