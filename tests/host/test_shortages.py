"""What the machine lacks is told as the machine's fault."""

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

from perflab.cli import _in_words
from perflab.errors import MachineShort, StackError
from perflab.host.meters import ProcessTreeMeter
from perflab.host.shortages import class_of, told
from perflab.load.clients.opening import kind_of
from perflab.load.clients.outcome import ERRORS
from perflab.paths import project_root
from perflab.stacks.asking import status_of
from perflab.stacks.backend import hold_port
from perflab.stacks.starting import wait_healthy


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
    spec = SimpleNamespace(health=health, of_user=False, docker=SimpleNamespace(port=0))
    launch = SimpleNamespace(control_port=1, port=1, spec=spec)
    instance: Any = SimpleNamespace(
        launch=launch, exit_reason=lambda: "", log=lambda: "", meter=ProcessTreeMeter
    )
    wait_healthy(["a"], {"a": instance}, lambda: "")


ASKED: dict[str, Callable[[], object]] = {
    "answers": lambda: status_of(1, "/"), "port": hold_port, "service": wait_for_a_service,
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
@pytest.mark.promise
def test_a_machine_without_files_is_at_fault_and_no_service(name: str) -> None:
    # In a process of its own: threads of this one may need files.
    code = f"from tests.host import test_shortages as t; t.ask_without_files({name!r})"
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=project_root(), capture_output=True, text=True, check=False)
    assert "machine is at fault" in done.stdout, done.stderr
    assert status_of(1, "/") is None, "nobody listens there, and that is no fault of the machine"


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


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EINVAL])
def test_a_file_that_may_not_be_read_is_told_and_is_no_shortage(number: int) -> None:
    error = OSError(number, os.strerror(number), "/a/file")
    assert told(error) == ""
    assert _in_words(error) == f"/a/file: {os.strerror(number)}"
    assert told(OSError(errno.EMFILE, "x", "/a/file"))


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
    others = [*errors, OSError(errno.ETIMEDOUT, ""), ValueError("x")]
    kinds = [ERRORS[kind_of(error, "connect")] for error in others]
    assert kinds == ["tls", "dns", "timeout", "connect"]
