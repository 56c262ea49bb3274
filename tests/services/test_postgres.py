"""The PostgreSQL service: its entrypoint on a real server, and its probe of flushes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from running import SECRET, Service, Start, database, server_pid, value_of

from perflab.paths import services_dir


def test_the_password_is_neither_left_on_disk_nor_in_the_servers_environment(
    postgres: Service,
) -> None:
    files = [path for path in postgres.data.rglob("*") if path.is_file()]
    assert len(files) > 100
    assert not [path for path in files if path.name.startswith("password.")]
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]
    environment = Path(f"/proc/{server_pid(postgres)}/environ").read_bytes()
    assert b"PGDATA=" in environment
    assert SECRET.encode() not in environment
    assert SECRET not in postgres.instance.log(lines=1000)


IN_FORCE = {
    "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "on",
    "full_page_writes": "on", "synchronous_commit": "on", "autovacuum": "off", "jit": "off",
    "max_connections": "30", "shared_buffers": "128MB", "server_encoding": "UTF8",
    "password_encryption": "scram-sha-256",
}  # fmt: skip


def test_the_server_runs_with_the_settings_that_the_studies_need(postgres: Service) -> None:
    shown = {name: value_of(postgres, f"SELECT current_setting('{name}')") for name in IN_FORCE}
    assert shown == IN_FORCE
    assert value_of(postgres, "SELECT datcollate FROM pg_database WHERE datname = 'perflab'") == "C"


def test_a_killed_server_comes_back_with_its_committed_rows(started: Start) -> None:
    service = started("postgres")
    value_of(service, "INSERT INTO inferences (label, probability) VALUES (0, 1) RETURNING id")
    os.kill(server_pid(service), signal.SIGKILL)
    assert "SIGKILL" in service.wait_ended()
    service.again().wait_healthy()
    assert value_of(service, "SELECT count(*) FROM inferences") == 1
    # And it ends in order although a client is connected.
    connection = database(service)
    os.kill(server_pid(service), signal.SIGINT)
    assert service.wait_ended() == "ended with exit status 0"
    connection.close()


FLUSH_US = 40_000


@pytest.mark.promise
def test_flushes_that_are_made_longer_are_felt_by_commits_and_seen_by_the_probe(
    started: Start, postgres: Service
) -> None:
    slow = started("postgres", flush_us=FLUSH_US)
    assert value_of(slow, "SELECT current_setting('perflab.flush_us')") == str(FLUSH_US)
    probed = slow.instance.run(slow.launch.spec.probes["flush"])
    assert min(json.loads(probed)["flush_us"]) > FLUSH_US
    assert quickest_us(slow, "on") > FLUSH_US > quickest_us(slow, "off")
    # A server that is not asked for it has nothing preloaded.
    assert b"LD_PRELOAD=\0" in Path(f"/proc/{server_pid(postgres)}/environ").read_bytes()


def quickest_us(service: Service, commit: str) -> float:
    """Return the shortest time of a few inserts with that synchronous_commit."""
    connection = database(service)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(f"SET synchronous_commit = {commit}")
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            cursor.execute("INSERT INTO inferences (label, probability) VALUES (0, 1)")
            times.append(time.perf_counter() - begin)
    connection.close()
    return 1e6 * min(times)


PROBE = services_dir() / "postgres" / "flush_probe.py"


def probe(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(PROBE), *arguments], capture_output=True, text=True, check=False
    )


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        yield Path(made)


def test_it_prints_one_duration_per_flush_and_leaves_nothing(folder: Path) -> None:
    done = probe(str(folder), "--count", "7")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    told = json.loads(done.stdout)
    assert set(told) == {"filesystem", "flush_us"}
    assert len(told["flush_us"]) == 7
    assert min(told["flush_us"]) > 0
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no tmpfs here")
def test_it_refuses_a_file_system_in_memory() -> None:
    done = probe("/dev/shm")
    assert done.returncode
    assert "tmpfs: put the database on a real disk" in done.stderr
    assert done.stdout == ""
