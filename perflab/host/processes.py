"""Processes as the kernel knows them: which one a number means, how it ended, who goes first."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

# SCHED_RESET_ON_FORK: threads and children made later are ordinary ones.
RESET_ON_FORK = getattr(os, "SCHED_RESET_ON_FORK", 0x40000000)


def identity(pid: int) -> str:
    """Return what tells a process from every other one of this host, also after a restart of it.

    It is the boot, the process id and its start in clock ticks; empty when the process is gone.
    Source: proc(5), /proc/pid/stat, field 22.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
    return f"{boot}/{pid}/{fields[19]}" if fields[0] not in "ZX" else ""


def alive(known: str) -> int | None:
    """Return the id of the process of that identity, or None when it has ended."""
    number = known.split("/")[1] if known.count("/") == 2 else ""
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        return None
    return int(number) if identity(int(number)) == known else None


def how_it_ended(code: int) -> str:
    """Say how a process ended; a negative code is the signal that ended it (as in subprocess)."""
    if code >= 0:
        return f"ended with exit status {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def go_first() -> bool:
    """Give the calling thread real-time priority; return whether the system let it.

    Otherwise whatever else runs on its core (on some machines the kernel's own memory monitor,
    for milliseconds, twice a second) delays it, and the delay looks like the server's. Needs root
    or CAP_SYS_NICE. Source: sched(7), SCHED_FIFO.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | RESET_ON_FORK, os.sched_param(1))
    except (OSError, AttributeError):
        return False
    return True


def give_way() -> None:
    """Let everything else on its core go before the calling thread; there is no way back.

    Source: sched(7), SCHED_IDLE.
    """
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
