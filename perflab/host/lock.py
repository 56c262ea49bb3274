"""One measurement of a user per host: a lock that the kernel releases when its holder dies.

Another user has another lock, and measurements of others are noise: :func:`other_users` names them.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from perflab.errors import HostBusy, UnsafePlace
from perflab.host.own_folders import check_own, user_name
from perflab.host.processes import alive, identity
from perflab.paths import lock_path

POLL_EVERY_S = 0.2
# Every process that measures has one of these modules in its command line.
MEASURES = ("perflab.trials.conductor", "perflab.load.workers.worker")


@dataclass(frozen=True)
class Holder:
    """The process that measures on this host now."""

    pid: int
    what: str
    since: str

    def __str__(self) -> str:
        return f"'{self.what}' (pid {self.pid}, since {self.since})" if self.pid else self.what


UNSEEN = Holder(0, "a process that cannot be seen from here", "")


def holder() -> Holder | None:
    """Return the holder of the lock, or None when the host is free; takes no lock."""
    try:
        note = json.loads(lock_path().read_text())
        pid = alive(note["holder"])
        return None if pid is None else Holder(pid, note["what"], note["since"])
    except (OSError, ValueError, KeyError):
        return None


@contextlib.contextmanager
def measurement_lock(
    what: str,
    wait_s: float = 0.0,
    tell: Callable[[str], object] = lambda text: print(text, file=sys.stderr),
    go_on: Callable[[], object] = lambda: None,
) -> Iterator[None]:
    """Hold the host's lock while the block runs; others who find the host busy see ``what``.

    ``tell`` hears for whom it waits; ``go_on`` raises where the wait is to end.

    Raises HostBusy where another measurement runs and does not end within ``wait_s``, and
    UnsafePlace where the lock, or its folder, is not the user's own.
    """
    descriptor = _opened(lock_path())
    try:
        _acquire(descriptor, wait_s, tell, go_on)
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        _write(descriptor, {"holder": identity(os.getpid()), "what": what, "since": since})
        try:
            yield
        finally:
            _write(descriptor, {})
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int:
    """Open or make the lock file; links are not followed, and children do not inherit it."""
    path.parent.mkdir(0o700, parents=True, exist_ok=True)
    check_own(path.parent)
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UnsafePlace(
            f"the host's lock {path} cannot be opened ({error.strerror}), so nothing was started. "
            "Way out: look at it and remove it, or set PERFLAB_LOCK to a file of your own"
        ) from None


def _acquire(
    descriptor: int, wait_s: float, tell: Callable[[str], object], go_on: Callable[[], object]
) -> None:
    deadline, told = time.monotonic() + wait_s, False
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        if time.monotonic() >= deadline:
            raise HostBusy(
                f"another measurement runs on this host: {holder() or UNSEEN}. Two measurements at "
                "once would disturb each other. Wait for its end: --wait SECONDS (wait_s in a "
                "notebook)."
            )
        if not told:
            who = holder() or UNSEEN
            tell(f"waiting, at most {wait_s:g} s, until this host is free: it measures {who}")
        told = True
        go_on()
        time.sleep(POLL_EVERY_S)


def _write(descriptor: int, note: dict[str, str]) -> None:
    """Write the holder into the lock file, for others to read; a full disk does no harm."""
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(note).encode(), 0)


def other_users() -> list[str]:
    """Return a sentence for each other user who measures or sends load on this host now."""
    users = set()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            uid = process.uids().real
            if uid != os.getuid() and any(word in MEASURES for word in process.cmdline()):
                users.add(user_name(uid))
    return [
        f"{user} also measures on this host now, which disturbs trials" for user in sorted(users)
    ]
