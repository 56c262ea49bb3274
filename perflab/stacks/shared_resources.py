"""What services have in common: files that both write or lock, their memory, and servers.

A service that is stopped may hold a lock on such a thing, and then another waits for it, or fails.
So it must not be stopped. Sources: proc(5), /proc/PID/fd, fdinfo, maps and net, /proc/locks.
"""

from __future__ import annotations

import os
import re
import socket
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from perflab.host.socket_diagnosis import servers_by_client

ESTABLISHED, LISTENS = "01", "0A"
SEMAPHORES, LATELY_S = "System V semaphores", 60.0
SEMAPHORE_TABLE = Path("/proc/sysvipc/sem")
WRITES = os.O_WRONLY | os.O_RDWR
# Files of databases, and files that stand for a lock: a neighbour in the folder may be opened and
# closed between two looks.
LOCKABLE = re.compile(r"\.(db|sqlite3?|mdb|lock|lck)$|-(wal|shm|journal)$|^(LOCK|lock)$")
# Device and inode; a name for what has none.
Key = tuple[int, int] | str
Address = tuple[str, int]


@dataclass
class Held:
    """What the processes of one service have in hand, each with a name to show.

    ``written`` are regular files open for writing and shared memory, ``locked`` files with a lock,
    ``opened`` all regular files; ``folders`` hold files of databases and locks; ``servers`` are the
    far ends of the connections that the service has opened.
    """

    opened: dict[Key, str] = field(default_factory=dict)
    written: dict[Key, str] = field(default_factory=dict)
    locked: dict[Key, str] = field(default_factory=dict)
    folders: dict[Key, str] = field(default_factory=dict)
    servers: dict[Key, str] = field(default_factory=dict)
    unknown: str = ""

    def add(self, later: Held) -> None:
        """Add what was in hand at another instant."""
        for name in ("opened", "written", "locked", "folders", "servers"):
            getattr(self, name).update(getattr(later, name))
        self.unknown = self.unknown or later.unknown

    def with_another(self, other: Held) -> str:
        """Return the name of something that both have in hand, or an empty string."""
        locks = {**self.locked, **other.locked}
        for mine, theirs in (
            (self.written, other.written),
            ({key: name for key, name in self.opened.items() if key in locks}, other.opened),
            (self.folders, other.folders),
            (self.servers, other.servers),
        ):
            if both := mine.keys() & theirs.keys():
                return min(mine[key] for key in both)
        return self.unknown or other.unknown


def in_common(held: Mapping[str, Held]) -> dict[str, str]:
    """Return what each service has in common with another, by the services' names."""
    common: dict[str, str] = {}
    for (first, mine), (second, theirs) in combinations(held.items(), 2):
        if what := mine.with_another(theirs):
            common.setdefault(first, what)
            common.setdefault(second, what)
    return common


def held_by(pids: Iterable[int]) -> Held:
    """Return what the processes of a service have in hand now.

    ``unknown`` says so where the kernel does not tell, as of processes of another user.
    """
    held, sockets = Held(), {}
    locked = _locked_inodes()
    if _uses_semaphores():
        # Nothing tells whose they are.
        held.written[SEMAPHORES] = SEMAPHORES
    for pid in pids:
        try:
            sockets[pid] = _add_files(held, pid, locked.get(pid, set()))
            _add_shared_memory(held, pid)
        except PermissionError:
            held.unknown = "what it has open cannot be read"
        except OSError:
            # It has ended.
            continue
    try:
        _add_servers(held, sockets)
    except OSError:
        held.unknown = "its connections cannot be read"
    return held


def _uses_semaphores() -> bool:
    """Return whether a System V semaphore was used lately (its time of use is the ninth column)."""
    with suppress(OSError):
        rows = [line.split() for line in SEMAPHORE_TABLE.read_text().splitlines()[1:]]
        return any(int(row[8]) > time.time() - LATELY_S for row in rows)
    return False


def _add_files(held: Held, pid: int, locks: set[int]) -> set[int]:
    """Add a process's open files; return the inodes of its sockets."""
    sockets = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            facts = link.stat()
            if stat.S_ISSOCK(facts.st_mode):
                sockets.add(facts.st_ino)
            if not stat.S_ISREG(facts.st_mode):
                continue
            key, name = (facts.st_dev, facts.st_ino), str(link.readlink())
            held.opened[key] = name
            if _flags(pid, link.name) & WRITES:
                held.written[key] = name
            if facts.st_ino in locks:
                held.locked[key] = name
            if facts.st_ino in locks or LOCKABLE.search(Path(name).name):
                _add_folder(held, pid, str(Path(name).parent))
    return sockets


def _flags(pid: int, number: str) -> int:
    for line in Path(f"/proc/{pid}/fdinfo/{number}").read_text().splitlines():
        if line.startswith("flags:"):
            return int(line.split()[1], 8)
    return 0


def _add_folder(held: Held, pid: int, folder: str) -> None:
    # A container's paths begin at its own root.
    with suppress(OSError):
        facts = Path(f"/proc/{pid}/root{folder}").stat()
        held.folders[facts.st_dev, facts.st_ino] = folder


def _add_shared_memory(held: Held, pid: int) -> None:
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        _, mode, _, device, inode, *name = line.split(None, 5)
        if mode.endswith("s") and "w" in mode and inode != "0":
            major, minor = (int(part, 16) for part in device.split(":"))
            shown = name[0].strip() if name else "shared memory"
            held.written[os.makedev(major, minor), int(inode)] = shown


def _locked_inodes() -> dict[int, set[int]]:
    """Return the inodes of locked files by process."""
    locked: dict[int, set[int]] = {}
    with suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.replace("->", "").split()
            locked.setdefault(int(words[4]), set()).add(int(words[5].rpartition(":")[2]))
    return locked


def _add_servers(held: Held, sockets: Mapping[int, set[int]]) -> None:
    """Add the far ends of connections whose near end is no port that the service listens at."""
    unix: dict[int, str] = {}
    if any(sockets.values()):
        unix = servers_by_client()
    for pid, inodes in sockets.items():
        for inode in inodes & unix.keys():
            held.servers[unix[inode]] = unix[inode]
        for far in _connected(pid, inodes):
            held.servers[far] = far.partition("%")[0]


def _connected(pid: int, inodes: set[int]) -> Iterator[str]:
    rows = [row for name in ("tcp", "tcp6") for row in _rows(pid, name)]
    listened = {near[1] for near, _, state, _ in rows if state == LISTENS}
    for near, (host, port), state, inode in rows:
        if state == ESTABLISHED and inode in inodes and near[1] not in listened:
            shown = f"{host}:{port}"
            # Loopback is another one in each namespace of the network.
            is_here = host.startswith("127.") or host == "::1"
            yield f"{shown}%{Path(f'/proc/{pid}/ns/net').stat().st_ino}" if is_here else shown


def _rows(pid: int, name: str) -> Iterator[tuple[Address, Address, str, int]]:
    """Yield near end, far end, state and inode of a process's namespace's TCP sockets."""
    with suppress(FileNotFoundError):
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
            words = line.split()
            yield _address(words[1]), _address(words[2]), words[3], int(words[9])


def _address(text: str) -> Address:
    """Return host and port; the kernel writes hosts as words in the machine's byte order."""
    host, port = text.split(":")
    raw = b"".join(
        int(host[at : at + 8], 16).to_bytes(4, "little") for at in range(0, len(host), 8)
    )
    family = socket.AF_INET if len(raw) == 4 else socket.AF_INET6
    return socket.inet_ntop(family, raw).removeprefix("::ffff:"), int(port, 16)
