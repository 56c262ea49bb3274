"""The memory of a group of processes, with what they share counted once, whoever else has it.

Resident memory counts a page once in every process that has it, so the sum over a server's workers
holds what they share many times. Proportional memory divides a page by all processes that have it,
also by those of another service that maps the same file: a library, a model.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

MAPPINGS = "smaps"
KIB = 1024
# Device and inode of a mapping; without a file both are 0.
Mapped = tuple[bytes, bytes]
NOTHING = b"0"


def held_bytes(pids: Iterable[int]) -> int:
    """Return the memory of processes in bytes; those that have ended have none.

    Of pages without a file each process has its part: only processes that forked share them. The
    pages of a file count once, and are those of the process that has most of it, or the parts of
    all if these are more.

    Reading it holds up a process that maps memory meanwhile, for some 10 ms where there are
    hundreds of MB: it is for times without load. A stopped process can be read. Raises OSError
    where the kernel does not tell, or not to us. Source: proc_pid_smaps(5), the kernel's
    Documentation/filesystems/proc.rst.
    """
    own = 0.0
    most: defaultdict[Mapped, int] = defaultdict(int)
    parts: defaultdict[Mapped, float] = defaultdict(float)
    for pid in pids:
        of_process: defaultdict[Mapped, int] = defaultdict(int)
        for mapped, sizes in _mappings(pid):
            resident, part = sizes.get(b"Rss", 0), sizes.get(b"Pss", 0)
            own += sizes.get(b"SwapPss", 0)
            of_file = resident - sizes.get(b"Anonymous", 0) if mapped[1] != NOTHING else 0
            share = of_file / resident if resident else 0.0
            own += part * (1 - share)
            parts[mapped] += part * share
            of_process[mapped] += of_file
        for mapped, size in of_process.items():
            most[mapped] = max(most[mapped], size)
    return round((own + sum(max(most[mapped], parts[mapped]) for mapped in most)) * KIB)


def _mappings(pid: int) -> Iterator[tuple[Mapped, dict[bytes, int]]]:
    """Yield the file of each mapping of a process, and its sizes in KiB by name."""
    folder = Path(f"/proc/{pid}")
    try:
        lines = (folder / MAPPINGS).read_bytes().splitlines()
    except ProcessLookupError:
        return
    except FileNotFoundError:
        if folder.exists():
            raise
        return
    mapped, sizes = (NOTHING, NOTHING), dict[bytes, int]()
    for line in lines:
        words = line.split(maxsplit=5)
        if words[0].endswith(b":"):
            if line.endswith(b" kB"):
                sizes[words[0][:-1]] = int(words[1])
            continue
        yield mapped, sizes
        mapped, sizes = (words[3], words[4]), {}
    yield mapped, sizes
