"""The PostgreSQL service: its entrypoint, on a real server."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from running import SECRET, Service, Start, database, server_pid, value_of


def test_the_table_takes_a_row_and_numbers_it(postgres: Service) -> None:
    inserted = "INSERT INTO inferences (label, probability) VALUES (1, 0.5) RETURNING id"
    assert value_of(postgres, inserted) == 1
    assert value_of(postgres, inserted) == 2
    assert value_of(postgres, "SELECT count(*) FROM inferences WHERE created_at <= now()") == 2


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
