"""The keeper of a stack's logs: what services write without end must not fill the disk.

A service writes into its log file itself, by appending: nothing stands between that could slow or
end it. One keeper per stack looks at the files' sizes twice a second, and from one that has grown
too long cuts out the middle, in place. It belongs to nobody, so that it goes on when the lab is
gone (a stack of ``perflab stack up`` has no other process of the lab), and ends soon after the last
service. Pipes instead of files would cost a copy of every line, and block or end a service when
their reader is stopped or killed.

Who is there is said by locks on open files, which end with their last holder, however it went: a
service shares a lock on its log with all that it starts, and the keeper holds one on the folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from io import BufferedWriter
from pathlib import Path

LONGEST_BYTES = 5 * 2**20
# What is kept of both ends: how the service started, and what it wrote last.
KEPT_BYTES = 256 * 1024
LOOK_EVERY_S = 0.5
LOWEST_PRIORITY = 19


def open_log(path: str) -> BufferedWriter:
    """Open a log for a service to append to; it counts as in use until its last holder ends."""
    file = open(path, "ab")  # noqa: SIM115 - the caller closes it
    fcntl.flock(file, fcntl.LOCK_SH)
    return file


def keep(folder: Path) -> None:
    """See to it that a stack's logs have a keeper; call it once a service is there."""
    if not _is_locked(folder):
        # Isolated and without site packages it is there at once, and small.
        subprocess.run(
            [sys.executable, "-I", "-S", __file__, str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            check=False,
        )


def cut_middle(log: Path) -> None:
    """Cut the middle out of a log that is too long.

    Writers append, so what they write next follows what is kept. Lines that are written while the
    log is cut may be lost, or come before the last ones that are kept.
    """
    with _opened(log, os.O_RDWR | os.O_APPEND) as descriptor:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size <= LONGEST_BYTES:
            return
        last = os.pread(descriptor, KEPT_BYTES, found.st_size - KEPT_BYTES)
        left_out = found.st_size - 2 * KEPT_BYTES
        os.ftruncate(descriptor, KEPT_BYTES)
        os.write(descriptor, b"\n[perflab: %d bytes left out here]\n" % left_out + last)


@contextlib.contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_locked(path: Path) -> bool:
    with _opened(path, os.O_RDONLY) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def _logs_in_use(folder: Path) -> bool:
    """Cut what is too long, and return whether a service holds one of the logs."""
    in_use = False
    for log in folder.glob("*.log"):
        # What cannot be done now may be the next time.
        with contextlib.suppress(OSError):
            cut_middle(log)
            in_use = _is_locked(log) or in_use
    return in_use


def main() -> None:
    """Leave the parent, and look at the logs until no service holds one."""
    folder = Path(sys.argv[1])
    if os.fork():
        return
    os.setsid()
    os.nice(LOWEST_PRIORITY)
    # Without the folder's lock it looks once more: a service that began meanwhile either found no
    # keeper, and got another, or is seen here.
    while _logs_in_use(folder):
        with contextlib.suppress(FileNotFoundError), _opened(folder, os.O_RDONLY) as descriptor:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return  # there is a keeper
            while _logs_in_use(folder):
                time.sleep(LOOK_EVERY_S)


if __name__ == "__main__":
    main()
