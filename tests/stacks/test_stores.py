"""Stores of services: empty or filled once by a setup, and the same at every start."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import psycopg2
import pytest

from perflab.errors import MachineShort, RunInterrupted, ServiceFailed, StackError
from perflab.host.own_folders import own_folder
from perflab.host.placing import placement
from perflab.instruments.statements import COUNTERS
from perflab.paths import open_dir, project_root, services_dir, state_dir, variants_dir
from perflab.stacks import cleanup
from perflab.stacks.backend import HOST
from perflab.stacks.plan import settle
from perflab.stacks.process_backend import choose
from perflab.stacks.residents import Residents
from perflab.stacks.service_processes import is_alive
from perflab.stacks.spec import BEGIN_IN, Setup, load_service, render
from perflab.stacks.stores import run_setup, store_node
from tests.stacks.asking import children_running, wait_until
from tests.support.children import child
from tests.support.stored import describe, stack

KINDS = ("postgres", "redis")


def residents_of(backend: str, kind: str, service: str) -> Residents:
    """Return one shop with its store, prepared and not started."""
    name = f"stores-{os.getpid()}-{time.monotonic_ns()}"
    plans = {"new": stack("new", kind, service)}
    residents = Residents(choose(backend), plans, placement(), name)
    residents.prepare()
    return residents


@contextmanager
def ended(residents: Residents) -> Iterator[Residents]:
    """End residents after the block, and require that nothing of them is left."""
    try:
        yield residents
    finally:
        residents.end()
    assert cleanup.everything() == []
    left = [*state_dir().glob(f"stacks/{residents.stack}.*")]
    left += open_dir().glob(f"data/{residents.stack}*/*")
    assert left == []


def found(residents: Residents) -> int:
    """Return how many rows the shop found when it last started."""
    return int(residents.instance("new", "new").log().split("found ")[-1].split()[0])


def add_rows(residents: Residents, count: int) -> None:
    port = residents.instance("new", "new").launch.port
    for _ in range(count):
        urllib.request.urlopen(f"http://{HOST}:{port}/", timeout=10).read()


def connected(residents: Residents) -> psycopg2.extensions.connection:
    store = residents.instance("new", "db").launch
    return psycopg2.connect(f"postgresql://perflab:{store.secret}@{HOST}:{store.port}/perflab")


def value_of(residents: Residents, statement: str) -> object:
    connection = connected(residents)
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchone()[0]  # type: ignore[index]
    finally:
        connection.close()


@pytest.mark.parametrize("kind", KINDS)
def test_every_start_begins_with_what_the_setup_left_whatever_was_written(
    backend_name: str, kind: str
) -> None:
    service = describe("new", "fill 40", docker=backend_name == "docker")
    with ended(residents_of(backend_name, kind, service)) as residents:
        for _ in range(2):
            residents.start()
            assert found(residents) == 40
            add_rows(residents, 3)
            assert residents.count("new") in (43, None)
            store = residents.instance("new", "db")
            told = store.run(load_service(f"store_{kind}").store.count)
            # All members of a list have one key.
            assert sum(map(int, told.split())) == (43 if kind == "postgres" else 1)
            residents.stop()
        residents.start()
        assert found(residents) == 40
        assert set(residents.took_s) == {"setup of new", "rest of db", "copy of db"}


def without_copies(name: str) -> str:
    """Describe a Valkey whose data the lab cannot bring to rest; return its name."""
    text = (services_dir() / "store_redis" / "service.toml").read_text()
    kept = [line for line in text.splitlines() if not line.startswith(('name = "store_', "rest ="))]
    folder = own_folder(variants_dir()) / name
    folder.mkdir(exist_ok=True)
    own = [f'name = "{name}"', f'folder = "{services_dir() / "store_redis"}"']
    (folder / "service.toml").write_text("\n".join([*own, *kept]))
    return name


def test_where_data_cannot_be_copied_the_setup_fills_an_empty_store_before_each_start() -> None:
    service, told = describe("new", "fill 40"), list[str]()
    plan = stack("new", "redis", service)
    store = plan.nodes[0].model_copy(update={"service": without_copies("variant-plain")})
    plans = {"new": plan.model_copy(update={"nodes": (store, plan.nodes[1])})}
    name = f"anew-{os.getpid()}"
    residents = Residents(choose("process"), plans, placement(), name, tell=told.append)
    residents.prepare()
    with ended(residents):
        for _ in range(2):
            residents.start()
            assert found(residents) == 40
            add_rows(residents, 3)
            residents.stop()
        assert set(residents.took_s) == {"setup of new"}
        assert any(text.startswith("setup of new took ") for text in told)


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_setup_every_start_begins_empty(kind: str) -> None:
    with ended(residents_of("process", kind, describe("new"))) as residents:
        for _ in range(2):
            residents.start()
            assert found(residents) == 0
            add_rows(residents, 3)
            residents.stop()
        assert residents.took_s == {}


@pytest.mark.parametrize("kind", KINDS)
def test_the_version_that_is_told_is_the_servers_own(kind: str) -> None:
    with ended(residents_of("process", kind, describe("new"))) as residents:
        residents.start()
        store = load_service(f"store_{kind}").store
        assert store is not None
        assert residents.versions[f"store_{kind}"]["server"] == store.text
        if kind == "postgres":
            assert value_of(residents, "SHOW server_version") == store.version
        else:
            assert f"version={store.version}" in residents.instance("new", "db").log()


OWN = {"listen_addresses", "port", "shared_preload_libraries", "unix_socket_directories"}
# What initdb writes into the configuration that every new cluster has.
INITDB = {
    "DateStyle",
    "TimeZone",
    "autovacuum_worker_slots",
    "default_text_search_config",
    "dynamic_shared_memory_type",
    "lc_messages",
    "lc_monetary",
    "lc_numeric",
    "lc_time",
    "log_timezone",
    "max_connections",
    "max_wal_size",
    "min_wal_size",
    "shared_buffers",
}
# What the entrypoint adds to it: statements are counted when the lab asks for it.
ADDED = {"pg_stat_statements.track"}  # fmt: skip


def test_postgresql_has_its_own_defaults_and_has_vacuumed_what_the_setup_wrote() -> None:
    with ended(residents_of("process", "postgres", describe("new", "fill 40"))) as residents:
        residents.start()
        connection = connected(residents)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT name, source FROM pg_settings WHERE source NOT IN ('default', 'override', "
                "'client', 'session')"
            )
            sources = dict(cursor.fetchall())
            cursor.execute("SELECT reltuples, relallvisible FROM pg_class WHERE relname = 'items'")
            assert cursor.fetchone() == (40, 1)
        connection.close()
        assert {name for name, source in sources.items() if source == "command line"} == OWN
        assert sources.keys() - OWN <= INITDB | ADDED
        assert value_of(residents, "SHOW autovacuum") == "on"
        assert value_of(residents, "SHOW server_encoding") == "UTF8"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.promise
def test_statements_are_counted_between_begin_and_end_and_cost_nothing_before(kind: str) -> None:
    with ended(residents_of("process", kind, describe("new"))) as residents:
        residents.start()
        counter = COUNTERS[f"store_{kind}"](residents.instance("new", "db"))
        if kind == "postgres":
            assert value_of(residents, "SHOW pg_stat_statements.track") == "none"
        add_rows(residents, 2)
        counter.prepare()
        if kind == "postgres":
            wait_until(lambda: value_of(residents, "SHOW pg_stat_statements.track") == "top")
        counter.begin()
        add_rows(residents, 5)
        statements = counter.end()
        counter.leave()
        name = {"postgres": "INSERT INTO items DEFAULT VALUES", "redis": "rpush"}[kind]
        calls, time_ms = statements[name]
        assert calls == 5
        assert time_ms > 0
        if kind == "postgres":
            wait_until(lambda: value_of(residents, "SHOW pg_stat_statements.track") == "none")


def test_a_version_that_is_not_there_is_refused_with_the_one_that_is() -> None:
    version = load_service("store_postgres").store.version  # type: ignore[union-attr]
    assert store_node("db", "postgres:18").service == "store_postgres"
    assert store_node("db", f"postgres:{version}") == store_node("db", "postgres")
    with pytest.raises(StackError, match=r"db = 'postgres:16': PostgreSQL 18\.\d+ is there; write"):
        store_node("db", "postgres:16")
    with pytest.raises(StackError, match=r"'postgres:1': PostgreSQL 18"):
        store_node("db", "postgres:1")
    with pytest.raises(StackError, match=r"no store 'postgers' \(did you mean 'postgres'\?\)"):
        store_node("db", "postgers")


def test_roles_may_have_digits() -> None:
    assert render("{db2.port} {x2} {port}", {"db2.port": 1, "port": 2}) == "1 {x2} 2"


def test_a_setup_that_fills_no_store_is_refused() -> None:
    plan = stack("new", "postgres", describe("new", "fill 40"))
    echo = plan.nodes[0].model_copy(update={"service": "echo"})
    changed = {"nodes": (echo, plan.nodes[1]), "database": "", "count": ""}
    with pytest.raises(StackError, match="fills 'db', and service 'echo' is no store"):
        settle({"new": plan.model_copy(update=changed)})


def test_a_setup_that_fails_is_told_with_its_last_lines_and_without_the_password() -> None:
    with ended(residents_of("process", "postgres", describe("new", "fail"))) as residents:
        with pytest.raises(ServiceFailed) as failure:
            residents.start()
        text = str(failure.value)
        assert "service 'new': its setup (" in text
        assert "shop.py fail) ended with exit status 3" in text
        assert "| no such table at postgresql://perflab:{env:STORE_PASSWORD" in text
        assert residents._secret not in text


def test_a_setup_that_fails_is_told_as_its_user_wrote_it() -> None:
    command = (*BEGIN_IN, "{artifacts}/.", "sh", "-c", "bin/shop -migrate; bin/shop {db.url}")
    spec = SimpleNamespace(setup=Setup(command=command), of_user=False)
    failed: Any = SimpleNamespace(
        launch=SimpleNamespace(spec=spec, port=1), exit_status=lambda: 3, exit_reason=lambda: "it",
        log=lambda: "",
    )  # fmt: skip
    with pytest.raises(ServiceFailed) as caught:
        run_setup("new", failed, {}, lambda: "")
    assert "its setup (sh -c 'bin/shop -migrate; bin/shop {db.url}') ended" in str(caught.value)


def test_a_setup_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    service = describe("new", "hang", notes, timeout_s=2.0)
    late = pytest.raises(ServiceFailed, match=r"shop.py hang\) took longer than 2 s")
    with ended(residents_of("process", "redis", service)) as residents, late:
        residents.start()
    assert is_gone(notes)


def is_gone(notes: Path) -> bool:
    """Return whether a setup that does not end has ended, with the process of its own session."""
    pids = map(int, notes.read_text().split()[2:])
    return not any(is_alive(psutil.Process(pid)) for pid in pids if psutil.pid_exists(pid))


def in_setup(residents: Residents, act: Callable[[], object], notes: Path) -> None:
    """Start residents, and act as soon as their setup, which does not end, has begun."""

    def wait() -> None:
        wait_until(notes.exists)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        residents.start()
    finally:
        thread.join()


def test_a_setup_that_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    notes, why = tmp_path / "notes", [""]
    with ended(residents_of("process", "redis", describe("new", "hang", notes))) as residents:
        residents._interrupted = lambda: why[0]
        with pytest.raises(RunInterrupted, match="during the setup of new: asked"):
            in_setup(residents, lambda: why.__setitem__(0, "asked"), notes)
    assert is_gone(notes)


def test_a_store_that_dies_while_it_is_filled_is_named(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    died = pytest.raises(ServiceFailed, match="service 'db': was ended by SIGKILL")
    with ended(residents_of("process", "redis", describe("new", "hang", notes))) as residents, died:
        in_setup(residents, lambda: os.kill(residents._instances["db"].pid, 9), notes)


def test_a_copy_that_is_interrupted_leaves_nothing() -> None:
    why = [""]
    with ended(residents_of("process", "redis", describe("new", "fill 40"))) as residents:
        residents._interrupted = lambda: why[0]
        residents._fill_stores()
        # Only the copy of a store comes before its start.
        residents._tell = lambda text: why.__setitem__(0, "asked" * (text == "starting db"))
        with pytest.raises(RunInterrupted, match="while the data of db was copied: asked"):
            residents.start()


@pytest.mark.skipif(os.getuid() != 0, reason="only root mounts a file system")
def test_a_disk_that_is_full_while_data_are_copied_is_told_as_such(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = Path(tempfile.mkdtemp(dir="/var/tmp"))
    small.chmod(0o755)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=120M,mode=755", "none", str(small)], check=False
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        monkeypatch.setenv("PERFLAB_STATE", str(small / "state"))
        with ended(residents_of("process", "postgres", describe("new", "fill 40"))) as residents:
            residents._fill_stores()
            room = os.statvfs(small)
            with (small / "filler").open("wb") as filler:
                filler.write(bytes(max(0, room.f_bavail * room.f_frsize - (8 << 20))))
            with pytest.raises(MachineShort, match="of 'db' cannot be copied: No space left"):
                residents.start()
            (small / "filler").unlink()
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)
        small.rmdir()


OWNER = """
import sys
from perflab.host.placing import placement
from perflab.stacks.process_backend import choose
from perflab.stacks.reaper import Reapers
from perflab.stacks.residents import Residents
from tests.support.stored import stack
stack_name, service = sys.argv[1:]
reapers = Reapers(stack_name)
plans = {"new": stack("new", "redis", service)}
residents = Residents(choose("process"), plans, placement(), stack_name)
residents.prepare()
print("up", flush=True)
residents.start()
"""


@pytest.mark.slow
def test_after_a_kill_in_the_setup_the_reaper_removes_all_of_it(tmp_path: Path) -> None:
    notes, name = tmp_path / "notes", f"filling-{os.getpid()}"
    service = describe("new", "hang", notes)
    with child(OWNER, name, service, cwd=project_root(), start_new_session=True) as owner:
        wait_until(notes.exists)
        assert {item.stack for item in cleanup.everything()} == {f"{name}.kept"}
        assert (open_dir() / "data" / f"{name}.kept" / "db").exists()
        for reaper in children_running("perflab.stacks.reaper", owner.pid)[:1]:
            reaper.kill()
        owner.send_signal(signal.SIGKILL)
    wait_until(
        lambda: (
            cleanup.everything() == []
            and not (state_dir() / "stacks" / f"{name}.kept").exists()
            and not (open_dir() / "data" / f"{name}.kept").exists()
        )
    )
    assert is_gone(notes)
