"""The whole examination, in the order in which it is shown."""

from __future__ import annotations

import os
import resource
import shutil
import sys
from pathlib import Path

from perflab.doctor import (
    cores,
    disk,
    docker_engine,
    limits,
    neighbours,
    programs,
    remains,
    variables,
)
from perflab.doctor.finding import Finding, Machine
from perflab.host.facts import installed
from perflab.paths import project_root, runs_dir, state_dir


def examine(machine: Machine | None = None) -> list[Finding]:
    """Look at everything; takes about a second, and changes nothing."""
    machine = machine or Machine()
    state, runs = state_dir(), runs_dir()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return [
        # First: what comes after it would be seen as another program.
        *neighbours.looked(machine),
        docker_engine.engine(docker_engine.asked()),
        disk.room("room for runs", runs, _free_bytes(runs)),
        disk.room("room for services", state, _free_bytes(state)),
        disk.database_disk(machine, state),
        cores.apart(sorted(os.sched_getaffinity(0))),
        cores.hyperthreads(machine),
        cores.governor(machine),
        cores.turbo(machine),
        cores.clock(machine),
        limits.files(sys.maxsize if most == resource.RLIM_INFINITY else most),
        limits.ports(machine),
        limits.backlog(machine),
        limits.reuse(machine),
        limits.swap(machine),
        programs.python(sys.version_info[:3]),
        programs.packages(_lock(), installed()),
        programs.browser(),
        programs.compiler(),
        *remains.looked(),
        variables.settings(os.environ),
    ]


def _free_bytes(folder: Path) -> int:
    there = next(place for place in (folder, *folder.parents) if place.exists())
    return shutil.disk_usage(there).free


def _lock() -> str:
    file = project_root() / "requirements.lock"
    return file.read_text() if file.is_file() else ""
