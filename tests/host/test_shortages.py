"""What the machine lacks is told as the machine's fault, and closed connections are waited for."""

from __future__ import annotations

import errno
import os
import resource
import socket
import ssl
import subprocess
import sys
import urllib.error
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perflab.errors import MachineShort, StackError
from perflab.host import shortages
from perflab.host.shortages import class_of, told, wait_for_ports
from perflab.load.clients.connection import kind_of
from perflab.load.clients.outcome import ERRORS
from perflab.paths import project_root
from perflab.stacks.backend import hold_port
from perflab.stacks.launching import answers, wait_healthy


@contextmanager
def without_files() -> Iterator[None]:
    """Let this process open no further file."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.open("/dev/null", os.O_RDONLY)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def wait_for_a_service() -> None:
    health = SimpleNamespace(command=(), http="/", any_status=True, timeout_s=0.2)
    launch = SimpleNamespace(control_port=1, spec=SimpleNamespace(health=health))
    instance: Any = SimpleNamespace(launch=launch, exit_reason=lambda: "", log=lambda: "")
    wait_healthy(["a"], {"a": instance}, lambda: "")


ASKED: dict[str, Callable[[], object]] = {
    "answers": lambda: answers(1, "/"), "port": hold_port, "service": wait_for_a_service,
}  # fmt: skip


def ask_without_files(name: str) -> None:
    """Ask with files, so that all is imported, and without; print what is raised then."""
    with suppress(StackError):
        ASKED[name]()
    with without_files():
        try:
            ASKED[name]()
        except MachineShort as error:
            text = str(error)
    print(text)


@pytest.mark.parametrize("name", ASKED)
def test_a_machine_without_files_is_at_fault_and_no_service(name: str) -> None:
    # In a process of its own: threads of this one may need files.
    code = f"from tests.host import test_shortages as t; t.ask_without_files({name!r})"
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=project_root(), capture_output=True, text=True, check=False)
    assert "machine is at fault" in done.stdout, done.stderr
    assert not answers(1, "/"), "nobody listens there, and that is no fault of the machine"


@pytest.mark.parametrize(
    ("number", "name"),
    [("EADDRNOTAVAIL", "ports"), ("EADDRINUSE", "ports"), ("EMFILE", "files"), ("ENFILE", "files"),
     ("ENOMEM", "machine"), ("ENOBUFS", "machine"), ("EINVAL", "machine"), ("EACCES", "machine"),
     ("ECONNREFUSED", ""), ("ECONNRESET", ""), ("EHOSTUNREACH", "")],
)  # fmt: skip
def test_every_error_of_the_system_is_sorted_alike_for_all_who_ask(number: str, name: str) -> None:
    error = OSError(getattr(errno, number), "words")
    assert ERRORS[kind_of(error, "connect")] == (name or "connect")
    wrapped = RuntimeError("a library's own")
    wrapped.__cause__ = error
    assert class_of(wrapped) == class_of(urllib.error.URLError(error)) == name
    assert bool(told(error)) == bool(name)


def test_a_command_that_may_open_no_file_says_so_without_a_traceback() -> None:
    program = Path(sys.executable).with_name("perflab")
    words = f"ulimit -n 8; exec {program} load http://127.0.0.1:9/ --users 1 -d 1"
    done = subprocess.run(["sh", "-c", words], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "raise the limit of open files (ulimit -n)" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_numbers_of_tls_and_of_names_are_other_numbers() -> None:
    errors = [ssl.SSLError(errno.EPERM, "x"), socket.gaierror(errno.EINVAL, "x")]
    assert [class_of(error) for error in errors] == ["", ""]


def test_a_load_waits_for_ports_that_closed_connections_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shortages, "REUSE", tmp_path / "reuse")
    monkeypatch.setattr(shortages, "RANGE", tmp_path / "range")
    shortages.REUSE.write_text("0\n")
    texts: list[str] = []

    def enough() -> None:
        raise StackError("enough")

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for _ in range(6):
            client = socket.create_connection(("127.0.0.1", port))
            accepted = server.accept()[0]
            client.close()
            accepted.close()
        shortages.RANGE.write_text("1 12\n")
        wait_for_ports(port, texts.append, enough)
        assert texts == [], "half of the ports are free"
        shortages.RANGE.write_text("1 11\n")
        with pytest.raises(StackError, match="enough"):
            wait_for_ports(port, texts.append, enough)
        assert "6 of 11 are held by closed connections to port" in texts[0]
        wait_for_ports(port + 1, texts.append, enough)
        shortages.REUSE.write_text("2\n")
        wait_for_ports(port, texts.append, enough)
        assert len(texts) == 1, "the kernel uses such ports again"
