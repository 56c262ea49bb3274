"""What the lab sees of why a service does not become healthy."""

from __future__ import annotations

import os
import re
from contextlib import suppress

import psutil

from perflab.errors import StackError
from perflab.host.meters import ProcessTable
from perflab.stacks.backend import HOST, Instance
from perflab.stacks.listening import owners

NAME = re.compile("[A-Z][A-Z0-9_]{2,}")
# As Python and shells say it.
MISSING = re.compile(
    r"(?<=KeyError: ')[A-Z][A-Z0-9_]*(?=')"
    r"|\b[A-Z][A-Z0-9_]*(?=: (?:parameter (?:null or )?not set|unbound variable))"
)
# As pydantic says it, whose settings have the names of variables in any case.
FIELD = re.compile(r"^(\w+)\n\s+field required", re.MULTILINE | re.IGNORECASE)


IN_USE = re.compile(r"address already in use|EADDRINUSE", re.IGNORECASE)


def with_hints(reason: str, instance: Instance) -> str:
    """Return the reason of a failure, and what may have led to it."""
    return "; ".join([reason, *_elsewhere(instance), *_taken(instance), *_not_passed(instance)])


def _elsewhere(instance: Instance) -> list[str]:
    """Say where the service listens, if nobody listens where the lab asks."""
    port, places = instance.launch.port, set()
    # What cannot be read gives no hint.
    with suppress(OSError, StackError, psutil.Error):
        if instance.exit_reason():
            return []
        if within := instance.launch.spec.docker.port:
            return [f"nobody listens at port {within} in its container"]
        if owners({port}):
            return []
        pids = instance.meter().members(ProcessTable())
        places = {
            (each.laddr.ip, each.laddr.port)
            for each in psutil.net_connections("tcp")
            if each.pid in pids and each.status == psutil.CONN_LISTEN and each.laddr
        }
    if not places:
        return []
    named = sorted(f"[{ip}]:{at}" if ":" in ip else f"{ip}:{at}" for ip, at in places)
    return [f"it listens at {', '.join(named)}, and the lab asks {HOST}:{port}"]


def _taken(instance: Instance) -> list[str]:
    """Say how a user's service gets its port, if its log says that it asked for one in use."""
    if not (instance.launch.spec.of_user and IN_USE.search(instance.log())):
        return []
    return ["it has to listen at the port in PORT, or at {port} in its command or a variable "
            "(--env NAME={port})"]  # fmt: skip


def _not_passed(instance: Instance) -> list[str]:
    """Name the variables in the log that the shell may have, and the service has not."""
    spec = instance.launch.spec
    if not spec.of_user:
        return []
    log = instance.log()
    named = {*NAME.findall(log)} & os.environ.keys() | {*MISSING.findall(log)}
    fields = {field.upper() for field in FIELD.findall(log)}
    named |= {name for name in os.environ if name.upper() in fields}
    lacks = sorted(named - spec.environment.keys() - {"PATH", "LANG", "TZ", "HOME"})
    if not lacks:
        return []
    is_here = {name: name in os.environ for name in lacks}
    options = " ".join(f"--env {name}{'' if known else '=...'}" for name, known in is_here.items())
    text = f"services do not get the variables of your shell: pass what they need ({options}"
    file = ", or [service.env] or env_file of perflab.toml" * (not all(is_here.values()))
    return [f"{text}{file})"]
