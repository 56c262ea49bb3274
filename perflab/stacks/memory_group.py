"""A limit on the memory of a service that runs as plain processes: a control group of its own.

RLIMIT_AS would bound addresses, of one process: a service that maps much and touches little would
fail, and one of many processes would take many times its limit. Only a control group bounds what
all processes of a service hold together, as a container's does.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from perflab.host.control_groups import (
    ROOT,
    folder_of,
    groups_of,
    memory_kills,
    unified_folder,
)

PREFIX = "perflab-"
# A process moves itself by writing 0 to a door that was opened for it; the door is its input.
ENTER = 'echo 0 >&0 && exec "$@" < /dev/null'
# The limit, and what keeps swap from widening it, by version of control groups.
MEMORY_FILES = {1: "memory.limit_in_bytes", 2: "memory.max"}
SWAP_FILES = {1: "memory.memsw.limit_in_bytes", 2: "memory.swap.max"}
WAYS_OUT = "run as root, under 'systemd-run --user --scope -p Delegate=yes', or --backend docker"
MIB = 1024 * 1024


class MemoryGroup:
    """The control group of one service's processes, with a limit on their memory.

    Raises
    ------
    OSError
        The group cannot be made, or does not take the limit.
    """

    def __init__(self, name: str, limit_mib: int) -> None:
        self._version, parent = _parent()
        self.folder = parent / f"{PREFIX}{name}"
        self.folder.mkdir(exist_ok=True)
        try:
            self._limit(limit_mib * MIB)
        except OSError:
            self.remove()
            raise

    def _limit(self, limit_bytes: int) -> None:
        (self.folder / MEMORY_FILES[self._version]).write_text(str(limit_bytes))
        swap = self.folder / SWAP_FILES[self._version]
        if swap.exists():
            # Version 1 bounds memory and swap together, version 2 swap alone.
            swap.write_text(str(limit_bytes if self._version == 1 else 0))
        elif psutil.swap_memory().total:
            raise OSError(f"the kernel does not account for swap ({swap} is not there)")

    @contextlib.contextmanager
    def door(self) -> Iterator[int]:
        """Open what a command of :meth:`entering` needs as its standard input."""
        descriptor = os.open(self.folder / "cgroup.procs", os.O_WRONLY)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def kills(self) -> int:
        """Return how many of its processes the kernel has killed at the limit."""
        return memory_kills(self.folder)

    def remove(self) -> None:
        """Remove the group, whose processes have all ended."""
        remove(self.folder)


def entering(command: Sequence[str]) -> list[str]:
    """Return a command that enters the group of its :meth:`MemoryGroup.door`, then becomes it.

    It is inside before its own first instruction, and needs no right to the group: the door was
    opened by us.
    """
    return ["sh", "-c", ENTER, "sh", *command]


def remove(folder: Path) -> None:
    """Remove a group that was made here; one in which something still runs stays."""
    if folder.name.startswith(PREFIX) and ROOT in folder.parents:
        with contextlib.suppress(OSError):
            folder.rmdir()


def obstacle() -> str:
    """Return why memory cannot be limited here, and the way out; empty where it can be.

    A group is made, entered and removed, so nothing is left to belief.
    """
    try:
        group = MemoryGroup(f"try-{os.getpid()}", 64)
    except OSError as error:
        return f"no control group can be made ({error}); {WAYS_OUT}"
    try:
        with group.door() as door:
            tried = subprocess.run(
                entering(["true"]), stdin=door, capture_output=True, text=True, check=False
            )
        return f"{tried.stderr.strip()}; {WAYS_OUT}" if tried.returncode else ""
    except OSError as error:
        return f"{error}; {WAYS_OUT}"
    finally:
        group.remove()


def _parent() -> tuple[int, Path]:
    """Return the version and the group in which groups with a limit can be made.

    Version 1: our own. Version 2 has no processes beside groups, so it is the nearest one above us
    that hands the memory controller down.

    Raises
    ------
    OSError
        No group hands it down.
    """
    groups = groups_of("self")
    own = folder_of(groups, "memory")
    if own is not None:
        return 1, own if own.exists() else ROOT / "memory"
    own = unified_folder(groups)
    for folder in [own, *own.parents]:
        with contextlib.suppress(OSError):
            if "memory" in (folder / "cgroup.subtree_control").read_text().split():
                return 2, folder
    raise OSError("no control group above this process hands the memory controller down")
