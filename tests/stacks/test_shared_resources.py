"""What two services have in common is seen from outside: files, locks, memory and servers."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from perflab.host.meters import Repeated
from perflab.stacks import shared_resources
from perflab.stacks.shared_resources import SEMAPHORES, held_by, in_common
from tests.stacks.asking import wait_until
from tests.support.children import child

READY = "import os, sys, time, socket, mmap, fcntl, sqlite3\n"
STAYS = "\nprint('ready', flush=True)\ntime.sleep(60)\n"


@contextmanager
def two(program: str, other: str = "") -> Iterator[Callable[[], dict[str, str]]]:
    """Yield a function that tells what two processes have in common, which carry out programs."""
    with ExitStack() as running:
        pids = [
            running.enter_context(child(READY + text + STAYS, stderr=subprocess.DEVNULL)).pid
            for text in (program, other or program)
        ]
        yield lambda: in_common(
            {name: held_by([pid]) for name, pid in zip("ab", pids, strict=True)}
        )


@pytest.mark.parametrize(
    ("program", "what"),
    [
        ("f = open('{folder}/orders', 'a')", "orders"),
        # A connection that waits for its next statement holds no lock.
        ("c = sqlite3.connect('{folder}/orders.db'); c.execute('create table if not exists t(x)')",
         "orders.db"),
        # Each has a file of its own, beside a lock that is held for an instant only.
        ("f = open('{folder}/' + str(os.getpid()) + '.lock', 'w')", "{folder}"),
        ("f = open('{folder}/shared', 'r'); fcntl.flock(f, fcntl.LOCK_SH)", "shared"),
        ("f = open('{folder}/shared', 'r+b'); m = mmap.mmap(f.fileno(), 1); f.close()", "shared"),
    ],
)  # fmt: skip
def test_a_file_that_two_services_write_lock_or_map_is_in_common(
    tmp_path: Path, program: str, what: str
) -> None:
    (tmp_path / "shared").write_bytes(b"x" * 100)
    with two(program.format(folder=tmp_path)) as common:
        assert common().keys() == {"a", "b"}
        assert what.format(folder=tmp_path) in common()["a"]


@pytest.mark.parametrize("kind", ["tcp", "tcp6", "unix"])
def test_a_server_to_which_both_are_connected_is_in_common(tmp_path: Path, kind: str) -> None:
    families = {"tcp": socket.AF_INET, "tcp6": socket.AF_INET6, "unix": socket.AF_UNIX}
    address = {"tcp": ("127.0.0.1", 0), "tcp6": ("::1", 0), "unix": str(tmp_path / "server")}[kind]
    connections: list[object] = []
    with socket.socket(families[kind], socket.SOCK_STREAM) as server:
        try:
            server.bind(address)
        except OSError:
            if kind != "tcp6":
                raise
            pytest.skip("this machine has no IPv6")
        server.listen()
        # A server's end has no name before it is accepted.
        accepted = Repeated(lambda: connections.append(server.accept()), 0.0)
        accepted.start()
        name = server.getsockname()
        family = families[kind].name
        connects = f"s = socket.socket(socket.{family}); s.connect({name!r})"
        with two(connects) as common:
            wait_until(lambda: len(connections) == 2)
            assert common().keys() == {"a", "b"}
        with two(connects, "s = None") as common:
            assert common() == {}


def test_services_apart_have_nothing_in_common_whoever_asks_them(tmp_path: Path) -> None:
    (tmp_path / "read").write_bytes(b"x")
    program = (
        f"r = open('{tmp_path}/read'); w = open('{tmp_path}/' + str(os.getpid()), 'w')\n"
        "n = open('/dev/null', 'w'); pair = socket.socketpair()\n"
        "l = socket.socket(); l.bind(('127.0.0.1', 0)); l.listen()\n"
        "c = socket.create_connection(l.getsockname()); s, _ = l.accept()"
    )
    with two(program) as common:
        assert common() == {}


def test_one_client_of_both_is_no_server_of_theirs() -> None:
    program = READY + (
        "l = socket.socket(); l.bind(('127.0.0.1', 0)); l.listen()\n"
        "print(l.getsockname()[1], flush=True); s, _ = l.accept(); time.sleep(60)"
    )
    with ExitStack() as running:
        pids = []
        for _ in range(2):
            service = running.enter_context(child(program, stderr=subprocess.DEVNULL))
            pids.append(service.pid)
            (listens,) = psutil.Process(service.pid).net_connections()
            running.enter_context(socket.create_connection(listens.laddr))
        assert in_common({str(pid): held_by([pid]) for pid in pids}) == {}


def test_a_semaphore_that_somebody_uses_may_be_that_of_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "sem"
    monkeypatch.setattr(shared_resources, "SEMAPHORE_TABLE", table)
    head = "key semid perms nsems uid gid cuid cgid otime ctime\n"
    for used_s, what in ((time.time() - 5, "System V semaphores"), (time.time() - 500, "")):
        table.write_text(f"{head}1295 0 600 1 0 0 0 0 {used_s:.0f} {used_s:.0f}\n")
        held = {name: held_by([os.getpid()]) for name in "ab"}
        assert (SEMAPHORES in held["a"].written) == bool(what)
