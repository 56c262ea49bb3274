"""One measurement per host: a lock that the kernel releases when its holder dies."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from perflab.errors import HostBusy
from perflab.paths import lock_path


@dataclass(frozen=True)
class Holder:
    """Who measures on this host now."""

    pid: int
    what: str
    since: str

    def __str__(self) -> str:
        return f"'{self.what}' (pid {self.pid}, since {self.since})"


def _open(path: Path) -> int:
    # In a sticky folder the kernel may refuse O_CREAT on somebody else's file, so open it
    # plainly first; all users of the host share one lock.
    try:
        return os.open(path, os.O_RDWR)
    except FileNotFoundError:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        with contextlib.suppress(PermissionError):
            os.fchmod(descriptor, 0o666)
        return descriptor


def _read_holder(descriptor: int) -> Holder:
    try:
        return Holder(**json.loads(os.pread(descriptor, 4096, 0)))
    except (ValueError, TypeError):
        return Holder(0, "an unknown measurement", "unknown")


def holder(path: Path | None = None) -> Holder | None:
    """Return who holds the lock, or None when the host is free."""
    path = path or lock_path()
    if not path.exists():
        return None
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_holder(descriptor)
    finally:
        os.close(descriptor)
    return None


@contextlib.contextmanager
def measurement_lock(
    what: str,
    wait_s: float = 0.0,
    path: Path | None = None,
    on_wait: Callable[[Holder], None] | None = None,
) -> Iterator[None]:
    """Hold the host's lock while the block runs.

    Parameters
    ----------
    what : str
        Shown to whoever finds the host busy.
    wait_s : float
        How long to wait for another measurement to end, in seconds; 0 refuses at once.
    on_wait : callable, optional
        Called once with the holder when waiting begins.

    Raises
    ------
    HostBusy
        Somebody else measures; the message says who and since when.
    """
    path = path or lock_path()
    descriptor = _open(path)
    try:
        _acquire(descriptor, time.monotonic() + wait_s, on_wait)
        facts = Holder(os.getpid(), what, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(asdict(facts)).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, deadline: float, on_wait: Callable[[Holder], None] | None) -> None:
    told = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            busy = _read_holder(descriptor)
        if time.monotonic() >= deadline:
            raise HostBusy(
                f"this host is measuring already: {busy}. Two measurements at once would spoil "
                "each other. Wait for it to end, or give --wait SECONDS (wait_s in a notebook)."
            )
        if on_wait and not told:
            on_wait(busy)
            told = True
        time.sleep(0.2)
