"""Who listens at a service's ports, also where the server has left its command's descendants.

A daemon is nobody's descendant: its parent becomes the first process of the machine, or an ancestor
of the lab that takes orphans (``PR_SET_CHILD_SUBREAPER``). What another program keeps, such as a
container engine and its proxies, has that program as its parent.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from pathlib import Path

import psutil

from perflab.stacks.backend import HOST

FIRST_PID = 1
REACHED = (HOST, "0.0.0.0", "::", f"::ffff:{HOST}")


def owners(ports: Collection[int]) -> set[int | None]:
    """Return the processes that listen on loopback at one of the ports; None: they are hidden."""
    return {
        found.pid
        for found in psutil.net_connections("tcp")
        if found.status == psutil.CONN_LISTEN
        and found.laddr
        and found.laddr.port in ports
        and found.laddr.ip in REACHED
    }


def daemon_of(pid: int | None, command: psutil.Process) -> psutil.Process | None:
    """Return the first process of the daemon that a process belongs to.

    None where it is older than ``command``, another program keeps it, or it is in a container.
    """
    with contextlib.suppress(psutil.Error, OSError):
        process = psutil.Process(pid)
        line = [process, *process.parents()]
        younger = [one for one in line if one.create_time() >= command.create_time()]
        keepers = {FIRST_PID, *(one.pid for one in psutil.Process().parents())}
        is_here = Path(f"/proc/{pid}/ns/pid").samefile("/proc/self/ns/pid")
        if pid and is_here and younger and younger[-1].ppid() in keepers:
            return younger[-1]
    return None
