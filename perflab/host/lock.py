"""One measurement per host: a lock that the kernel releases when its holder dies.

Other users of the host share it, so what lies at its path may be theirs. They can make the lab
wait, and it says for whom; they cannot make it read, write or lock anything else.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from perflab.errors import HostBusy, UnsafePlace
from perflab.host import lock_guard
from perflab.host.lock_file import is_still, open_existing, open_lock
from perflab.host.lock_holder import UNSEEN, Holder, holder_of, leave_note
from perflab.paths import lock_path

__all__ = ["UNSEEN", "Holder", "holder", "measurement_lock", "problem"]

ATTEMPTS = 5
PAUSE_S = 0.01


def holder(path: Path | None = None) -> Holder | None:
    """Return who holds the lock, or None when the host is free; looking disturbs nobody.

    What lies at the path and cannot be the lock is held by nobody: see :func:`problem`.
    """
    path = path or lock_path()
    found = None
    with contextlib.suppress(FileNotFoundError, UnsafePlace):
        descriptor = open_existing(path)
        try:
            found = holder_of(descriptor)
        finally:
            os.close(descriptor)
    return found or lock_guard.taker(path)


def problem(path: Path | None = None) -> str:
    """Return why nobody can measure on this host now, or an empty string when one can."""
    try:
        os.close(open_existing(path or lock_path()))
    except FileNotFoundError:
        return ""
    except UnsafePlace as error:
        return str(error)
    return ""


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
    UnsafePlace
        What lies at the lock's path cannot be a lock; the message says what it is and whose.
    """
    with contextlib.ExitStack() as held:
        descriptor = _acquire(held, path or lock_path(), time.monotonic() + wait_s, on_wait)
        leave_note(descriptor, what)
        yield


def _acquire(
    held: contextlib.ExitStack,
    path: Path,
    deadline: float,
    on_wait: Callable[[Holder], None] | None,
) -> int:
    """Return the locked file's descriptor; ``held`` lets go of all that was taken."""
    told = False
    while True:
        got = _try(held, path)
        if isinstance(got, int):
            return got
        if time.monotonic() >= deadline:
            raise HostBusy(
                f"this host is measuring already: {got}. Two measurements at once would spoil "
                "each other. Wait for it to end, or give --wait SECONDS (wait_s in a notebook).",
                str(got),
            )
        if on_wait and not told:
            on_wait(got)
            told = True
        time.sleep(0.2)


def _try(held: contextlib.ExitStack, path: Path) -> int | Holder:
    """Take file and guard, or say who has one of them."""
    busy: Holder | None = None
    for _ in range(ATTEMPTS):
        with contextlib.ExitStack() as taken:
            descriptor = open_lock(path)
            taken.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                busy = holder_of(descriptor)
            else:
                guard = lock_guard.take(path)
                if guard is None:
                    busy = lock_guard.taker(path)
                elif is_still(path, descriptor):
                    taken.callback(guard.close)
                    held.push(taken.pop_all())
                    return descriptor
                else:
                    guard.close()
        if busy is not None:
            return busy
        # It was let go meanwhile, or the file was deleted before it was locked: once more.
        time.sleep(PAUSE_S)
    return UNSEEN
