"""Processes as the kernel knows them: which one a number means, and what it has held in memory."""

from __future__ import annotations

from pathlib import Path


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


def peak_memory_bytes() -> int:
    """Return this process's highest resident memory, without that of whoever started it.

    getrusage(2) counts what the process was before its execve(2), a copy of its parent: a small
    worker of a large notebook would be charged with the notebook. Source: proc(5), VmHWM.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)
