"""Examine the machine: what bears on measurements, and what to do about it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab.host.lock import holder, other_users
from perflab.host.placing import placement
from perflab.paths import runs_dir, state_dir
from perflab.stacks import cleanup

OK, BEWARE, WRONG = "ok", "beware", "wrong"
CPU = "/sys/devices/system/cpu"
# Name, the kernel's file, the values that bear on results, their effect, and what to do.
SWITCHES = (
    ("SMT", f"{CPU}/smt/active", ("1",), "two logical cores share one, and slow each other down",
     f"echo off > {CPU}/smt/control"),
    ("governor", f"{CPU}/cpu0/cpufreq/scaling_governor",
     ("powersave", "ondemand", "conservative", "schedutil"), "the clock rate follows the load",
     "cpupower frequency-set --governor performance"),
    ("turbo (Intel)", f"{CPU}/intel_pstate/no_turbo", ("0",), "the clock rate depends on heat",
     f"echo 1 > {CPU}/intel_pstate/no_turbo"),
    ("turbo", f"{CPU}/cpufreq/boost", ("1",), "the clock rate depends on heat",
     f"echo 0 > {CPU}/cpufreq/boost"),
)  # fmt: skip
LITTLE_GB, TOO_LITTLE_GB = 5.0, 0.5
BUSY_SHARE, STOLEN_SHARE = 0.10, 0.01
LOOK_S = 1.0


@dataclass(frozen=True)
class Finding:
    """One row of the table.

    ``state`` is ``ok``; ``beware``: measurements can be made, and something bears on them; or
    ``wrong``: no measurement could be made or trusted. ``todo`` says what to do about both.
    """

    what: str
    state: str
    found: str
    todo: str = ""


def examine() -> list[Finding]:
    """Examine everything; this takes about a second and changes nothing."""
    state, runs, client = state_dir(), runs_dir(), cleanup.docker_client()
    before = _first_line("/proc/stat")
    time.sleep(LOOK_S)
    return [
        *neighbours(before, _first_line("/proc/stat")),
        engine(None if client is None else client.info()),
        room("room for runs", runs, _free_gb(runs)),
        room("room for services", state, _free_gb(state)),
        database_disk(Path("/proc/mounts").read_text(), state),
        cores(sorted(os.sched_getaffinity(0))),
        *(switch(row[0], _first_line(row[1]), *row[2:]) for row in SWITCHES),
        *leftover(),
    ]


def neighbours(before: str, after: str) -> list[Finding]:
    """Judge the CPU time that other programs and other guests of the machine took meanwhile.

    Parameters
    ----------
    before, after : str
        The first line of /proc/stat at two instants: time of all cores together, in ticks. Source:
        proc(5).
    """
    ticks = [list(map(int, line.split()[1:9])) for line in (before, after)]
    user, nice, system, idle, waiting, irq, softirq, stolen = (
        b - a for a, b in zip(*ticks, strict=True)
    )
    busy = user + nice + system + irq + softirq
    total = max(1, busy + idle + waiting + stolen)
    others = _share("other programs", busy / total, BUSY_SHARE, "stop what runs beside (see 'top')")
    todo = "take a machine of your own, or measure when its neighbours rest"
    return [others, _share("stolen time", stolen / total, STOLEN_SHARE, todo)]


def _share(what: str, share: float, most: float, todo: str) -> Finding:
    text = f"{share:.1%} of all cores in {LOOK_S:g} s"
    return Finding(what, BEWARE, text, todo) if share > most else Finding(what, OK, text)


def engine(info: Mapping[str, Any] | None) -> Finding:
    """Judge the Docker engine by its ``info`` (None: none answers), above all its network."""
    way_out = "use an engine on Linux itself, or --backend process"
    if info is None:
        text = "none answers: services run as plain processes"
        return Finding("Docker engine", BEWARE, text, way_out)
    version = str(info.get("ServerVersion", "unknown"))
    networks = (info.get("Plugins") or {}).get("Network") or []
    if "host" not in networks or "Docker Desktop" in str(info.get("OperatingSystem", "")):
        text = f"{version}, no host network: a proxy is in the path"
        return Finding("Docker engine", BEWARE, text, way_out)
    return Finding("Docker engine", OK, f"{version}, host network")


def room(what: str, folder: Path, free_gb: float) -> Finding:
    """Judge the free space in a folder."""
    text = f"{free_gb:,.1f} GB free in {folder}"
    if free_gb >= LITTLE_GB:
        return Finding(what, OK, text)
    state = WRONG if free_gb < TOO_LITTLE_GB else BEWARE
    return Finding(what, state, text, "remove old runs and images, or take another disk")


def _free_gb(folder: Path) -> float:
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    return shutil.disk_usage(existing).free / 1e9


def database_disk(mounts: str, folder: Path) -> Finding:
    """Judge whether a database's flushes reach a disk; ``mounts`` is the text of /proc/mounts."""
    lines = [line.split() for line in mounts.splitlines()]
    above = [words for words in lines if len(words) > 2 and folder.is_relative_to(words[1])]
    # The innermost mount counts, and of two on one point the later one.
    kind = max(reversed(above), key=lambda words: len(Path(words[1]).parts), default=[""] * 3)[2]
    if kind in ("tmpfs", "ramfs"):
        text = f"{folder} is in memory ({kind}): a flush costs nothing there"
        return Finding("state folder", WRONG, text, "PERFLAB_STATE=/var/tmp/... on a real disk")
    return Finding("state folder", OK, f"{folder} on {kind or 'an unknown file system'}")


def cores(available: Sequence[int]) -> Finding:
    """Tell which roles share a core."""
    shared = placement(available).shared
    if not shared:
        return Finding("cores", OK, f"{len(available)} cores: every role has its own")
    if len(available) < 2:
        return Finding("cores", WRONG, shared, "give the lab two cores at least (cpuset)")
    return Finding("cores", BEWARE, shared, "8 cores keep all of them apart")


def switch(what: str, value: str, bad: Sequence[str], effect: str, todo: str) -> Finding:
    """Judge the value in a file of the kernel; a file that does not exist is no fault."""
    if value in bad:
        return Finding(what, BEWARE, f"{value}: {effect}", todo)
    return Finding(what, OK, value or "the kernel does not tell")


def leftover() -> list[Finding]:
    """Tell who measures now, and which services the lab itself has left."""
    busy, others = holder(), other_users()
    up = [f"{item.service} ({item.stack}, {item.backend})" for item in cleanup.everything()]
    folders = [str(folder) for folder in cleanup.orphaned_folders()]
    left = [] if busy else [*up, *folders]
    return [
        _unless(
            "host lock", "free", f"measuring now: {busy}" * bool(busy), "wait for its end (--wait)"
        ),
        _unless("other users", "none measures", "; ".join(others), "measure when they have ended"),
        _unless(
            "services", "none left", f"up: {', '.join(left)}" * bool(left), "perflab stack down"
        ),
    ]


def _unless(what: str, good: str, bad: str, todo: str) -> Finding:
    return Finding(what, BEWARE, bad, todo) if bad else Finding(what, OK, good)


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text().partition("\n")[0].strip()
    except OSError:
        return ""
