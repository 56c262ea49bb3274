"""Processes as the kernel knows them: identity, end and priority."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from io import FileIO
from pathlib import Path
from typing import TextIO

# SCHED_RESET_ON_FORK: threads and children that are made later have normal priority.
RESET_ON_FORK = getattr(os, "SCHED_RESET_ON_FORK", 0x40000000)


def identity(pid: int) -> str:
    """Return a text that identifies a process on this host, also after a reboot.

    It is boot, process id and start in clock ticks; empty when the process has ended.
    Source: proc(5), /proc/pid/stat, field 22.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
    return f"{boot}/{pid}/{fields[19]}" if fields[0] not in "ZX" else ""


def alive(mark: str) -> int | None:
    """Return the id of the process with that identity, or None when it has ended."""
    number = mark.split("/")[1] if mark.count("/") == 2 else ""
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        return None
    return int(number) if identity(int(number)) == mark else None


def program_name(pid: int) -> str:
    """Return the name of a process's program; empty where it has ended, or may not be read."""
    try:
        return Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        return ""


def may_not_be_read(pid: int) -> bool:
    """Return whether a process runs whose program this user may not see."""
    try:
        Path(f"/proc/{pid}/exe").readlink()
    except OSError as error:
        return isinstance(error, PermissionError)
    return False


def busiest(pids: Iterable[int]) -> int | None:
    """Return the process that has used most CPU itself; None where all have ended."""
    # One that has ended, and was not waited for, has its times still, and no program.
    return max((pid for pid in pids if program_name(pid)), key=_own_ticks, default=None)


def _own_ticks(pid: int) -> int:
    """Return the CPU of a process without its children, in clock ticks; -1 where it has ended.

    Source: proc(5), /proc/pid/stat, fields 14 and 15.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return -1
    return int(fields[11]) + int(fields[12])


def how_it_ended(code: int) -> str:
    """Say how a process ended; a negative code is the signal that ended it, as in subprocess."""
    if code >= 0:
        return f"ended with exit status {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def private_streams() -> tuple[FileIO, TextIO]:
    """Return standard input, unbuffered, and standard output, by lines, for a protocol alone.

    What else reads standard input finds its end, and what else is printed goes to standard error:
    scripts, libraries and debuggers cannot break into the protocol.
    """
    asked, answered = FileIO(os.dup(0)), os.fdopen(os.dup(1), "w", buffering=1)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return asked, answered


@contextlib.contextmanager
def printed_aside() -> Iterator[None]:
    """Send what the block prints to standard error, also where it writes to the descriptor."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


@contextlib.contextmanager
def bound_to(cores: Iterable[int]) -> Iterator[None]:
    """Bind this thread to cores; a child that the block starts inherits them from its beginning."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(cores))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def go_first() -> bool:
    """Give the calling thread real-time priority; return whether the system allowed it.

    Otherwise other work on its core (such as the kernel's own memory monitor) delays it, and the
    delay looks like the server's. Needs root or CAP_SYS_NICE. Source: sched(7), SCHED_FIFO.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | RESET_ON_FORK, os.sched_param(1))
    except (OSError, AttributeError):
        return False
    return True


def give_way() -> None:
    """Give the calling thread the lowest priority on its core; it cannot be raised again.

    Source: sched(7), SCHED_IDLE.
    """
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
