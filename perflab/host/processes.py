"""Which process a number means: numbers are used again, a number and its start are not."""

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
