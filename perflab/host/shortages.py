"""What this machine lacks (ports, files, memory, rights): no service is at fault then.

The operating system tells it by the number of an error. Sources: connect(2), socket(2), bind(2). A
closed connection holds its port for a minute (TIME_WAIT, RFC 9293 section 3.6).
"""

from __future__ import annotations

import errno
import os
import resource
import socket
import ssl
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

# An error's number, and the class of a request that fails by it.
CLASSES = {
    errno.EADDRNOTAVAIL: "ports", errno.EADDRINUSE: "ports", errno.EMFILE: "files",
    errno.ENFILE: "files", errno.ENOMEM: "machine", errno.ENOBUFS: "machine",
    errno.EINVAL: "machine", errno.EACCES: "machine", errno.EPERM: "machine",
}  # fmt: skip
WAYS_OUT = {
    "ports": "close other connections, wait a minute, or widen net.ipv4.ip_local_port_range",
    "files": "raise the limit of open files (ulimit -n)",
    "machine": "look at its memory, buffers, limits of processes and firewall",
}
RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
REUSE = Path("/proc/sys/net/ipv4/tcp_tw_reuse")
TIME_WAIT, HELD_S, LOOK_EVERY_S = "06", 75.0, 0.5
# A load may need as many ports as there are: so few of them may be held when it begins.
MOST_HELD = 0.5


def _number_of(error: BaseException | None) -> int:
    """Return the number by which an error, or one that caused it, tells a shortage; 0 without."""
    while error is not None:
        # TLS and the look-up of names have numbers of their own.
        of_system = not isinstance(error, ssl.SSLError | socket.gaierror)
        if isinstance(error, OSError) and of_system and error.errno in CLASSES:
            return error.errno
        reason = getattr(error, "reason", None)
        error = reason if isinstance(reason, OSError) else error.__cause__ or error.__context__
    return 0


def class_of(error: BaseException) -> str:
    """Return the class of a request that failed for lack of something here; empty for others."""
    return CLASSES.get(_number_of(error), "")


def told(error: BaseException) -> str:
    """Return a shortage in words, with the way out; empty where the machine is not at fault."""
    number = _number_of(error)
    kind = CLASSES.get(number, "")
    return kind and f"this machine is at fault ({os.strerror(number)}): {WAYS_OUT[kind]}"


def few_files(needed: int) -> str:
    """Return in words that a process may not open so many files; empty where it may."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if most in (resource.RLIM_INFINITY, -1) or most >= needed:
        return ""
    return f"a process may open {most} files only: {WAYS_OUT['files']}"


def held(port: int) -> int:
    """Return how many closed connections to a port hold local ports that cannot be used again."""
    count, address = 0, f":{port:04X}"
    with suppress(OSError):
        if REUSE.read_text().strip() != "0":
            return 0
        for name in ("tcp", "tcp6"):
            for line in Path("/proc/net", name).read_text().splitlines():
                words = line.split()
                count += words[2].endswith(address) and words[3] == TIME_WAIT
    return count


def wait_for_ports(
    port: int,
    tell: Callable[[str], object] = lambda text: print(text, file=sys.stderr),
    go_on: Callable[[], object] = lambda: None,
) -> None:
    """Wait until at most half of the local ports are held by closed connections to a port.

    ``go_on`` raises where the wait is to end.
    """
    low, high = map(int, RANGE.read_text().split())
    began, most = time.monotonic(), MOST_HELD * (high - low + 1)
    first = count = held(port)
    if count > most:
        tell(
            f"waiting, at most {HELD_S:g} s, for local ports: {count} of {high - low + 1} are held "
            f"by closed connections to port {port} (TIME_WAIT)"
        )
    while count > most and time.monotonic() < began + HELD_S:
        go_on()
        time.sleep(LOOK_EVERY_S)
        count = held(port)
    if first > most:
        tell(f"waited {time.monotonic() - began:.0f} s for local ports; {count} are still held")
