"""A second hold on the lock that nobody can delete: a socket with an abstract name.

Who deletes a locked file frees its name: the next one makes a file of that name, locks it, and
two would measure at once. The kernel gives an abstract name to one process only and takes it back
when that process ends, however it ends. Source: unix(7).
"""

from __future__ import annotations

import hashlib
import os
import socket
import struct
from pathlib import Path

from perflab.host.lock_holder import UNSEEN, Holder, describe

ROOM_FOR_LOOKERS = 128
CREDENTIALS = struct.Struct("3i")


def take(path: Path) -> socket.socket | None:
    """Take the name that belongs to a lock file, or return None when somebody has it."""
    guard = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        guard.bind(_name(path))
        guard.listen(ROOM_FOR_LOOKERS)
    except OSError:
        guard.close()
        return None
    return guard


def taker(path: Path) -> Holder | None:
    """Return who has the name, or None when it is free."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as looking:
        looking.setblocking(False)
        try:
            looking.connect(_name(path))
        except ConnectionRefusedError:
            return None
        except OSError:
            return UNSEEN
        size = CREDENTIALS.size
        answer = looking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return describe(CREDENTIALS.unpack(answer)[0])


def _name(path: Path) -> bytes:
    place = path.parent.resolve() / path.name
    return b"\0perflab-lock-" + hashlib.sha256(os.fsencode(place)).hexdigest().encode()
