"""What this machine lacks (ports, files, memory, rights): no service is at fault then.

The operating system tells it by the number of an error. Sources: connect(2), socket(2), bind(2).
"""

from __future__ import annotations

import errno
import os
import resource
import socket
import ssl

# An error's number, and the class of a request that fails by it.
CLASSES = {
    errno.EADDRNOTAVAIL: "ports", errno.EADDRINUSE: "ports", errno.EMFILE: "files",
    errno.ENFILE: "files", errno.ENOMEM: "machine", errno.ENOBUFS: "machine",
    errno.EINVAL: "machine", errno.EACCES: "machine", errno.EPERM: "machine",
}  # fmt: skip
# Of a file these tell of rights to it, or of its name.
OF_NO_FILE = (errno.EINVAL, errno.EACCES, errno.EPERM)
WAYS_OUT = {
    "ports": "close other connections, wait a minute, or widen net.ipv4.ip_local_port_range",
    "files": "raise the limit of open files (ulimit -n)",
    "machine": "look at its memory, buffers, limits of processes and firewall",
}


def _number_of(error: BaseException | None) -> int:
    """Return the number by which an error, or one that caused it, tells a shortage; 0 without."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in CLASSES and _is_of_machine(error):
            return error.errno
        reason = getattr(error, "reason", None)
        error = reason if isinstance(reason, OSError) else error.__cause__ or error.__context__
    return 0


def _is_of_machine(error: OSError) -> bool:
    # TLS and the look-up of names have numbers of their own.
    is_of_system = not isinstance(error, ssl.SSLError | socket.gaierror)
    return is_of_system and (error.filename is None or error.errno not in OF_NO_FILE)


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
