"""The memory of a process, with its part of what it shares with others.

Resident memory counts a page once in every process that has it. So the sum over a server's workers
holds what they share with the process that forked them many times.
"""

from __future__ import annotations

from pathlib import Path

TOTALS, PARTS = "smaps_rollup", (b"Pss:", b"SwapPss:")
KIB = 1024


def proportional_bytes(pid: int) -> int:
    """Return a process's memory in bytes: of a page that n processes share, it has 1/n.

    0 for a process that has ended. Reading it holds up a process that maps memory meanwhile, for
    some 10 ms where there are hundreds of MB: it is for times without load. A stopped process can
    be read. Raises OSError where the kernel does not tell (before Linux 4.14), or not to us.
    Source: proc_pid_smaps(5), the kernel's Documentation/filesystems/proc.rst.
    """
    folder = Path(f"/proc/{pid}")
    try:
        lines = (folder / TOTALS).read_bytes().splitlines()
    except ProcessLookupError:
        return 0
    except FileNotFoundError:
        if folder.exists():
            raise
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith(PARTS)) * KIB
