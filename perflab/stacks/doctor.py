"""Examine the machine: what bears on measurements, and what to do about it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab.host.facts import CPU, first_line, switches
from perflab.host.lock import holder, other_users
from perflab.host.meters import CoreTimes, core_times
from perflab.host.placing import placement
from perflab.paths import runs_dir, state_dir
from perflab.recordings.switches import SWITCHES, Switch
from perflab.stacks import cleanup
from perflab.stacks.docker.engine import docker_client
from perflab.statistics.in_words import as_share

OK, BEWARE, WRONG = "ok", "beware", "wrong"
SMT = Switch(
    "SMT",
    ("0",),
    "two logical cores share a real one: each is slower",
    f"echo off > {CPU}/smt/control",
)
LITTLE_GB, TOO_LITTLE_GB = 5.0, 0.5
BUSY_SHARE, STOLEN_SHARE = 0.10, 0.01
SAMPLE_S = 1.0
Times = Mapping[int, CoreTimes]


@dataclass(frozen=True)
class Finding:
    """One row of the table.

    ``state`` is ``ok``; ``beware``: something bears on measurements; or ``wrong``: no measurement
    could be made or trusted.
    """

    what: str
    state: str
    found: str
    todo: str = ""


def examine() -> list[Finding]:
    """Examine everything; this takes about a second and changes nothing."""
    state, runs, client = state_dir(), runs_dir(), docker_client()
    before = core_times()
    time.sleep(SAMPLE_S)
    return [
        *neighbours(before, core_times()),
        engine(None if client is None else client.info()),
        room("room for runs", runs, _free_gb(runs)),
        room("room for services", state, _free_gb(state)),
        database_disk(Path("/proc/mounts").read_text(), state),
        cores(sorted(os.sched_getaffinity(0))),
        switch(SMT, first_line(f"{CPU}/smt/active")),
        *(switch(SWITCHES[name], value) for name, value in switches().items()),
        *leftover(),
    ]


def neighbours(before: Times, after: Times) -> list[Finding]:
    """Judge the time that other programs and other guests took of all cores meanwhile."""
    whole_ns = SAMPLE_S * 1e9 * len(before)
    busy_ns = sum(after[core].busy_ns - before[core].busy_ns for core in before)
    stolen_ns = sum(after[core].steal_ns - before[core].steal_ns for core in before)
    todo = "use a machine of your own, or measure when its other guests are idle"
    return [
        _share(
            "other programs", busy_ns / whole_ns, BUSY_SHARE, "stop the other programs (see 'top')"
        ),
        _share("stolen time", stolen_ns / whole_ns, STOLEN_SHARE, todo),
    ]


def _share(what: str, share: float, most: float, todo: str) -> Finding:
    return _judged(
        what, f"{as_share(share, 1)} of all cores in {SAMPLE_S:g} s", todo * (share > most)
    )


def _judged(what: str, text: str, todo: str, bad: str = BEWARE) -> Finding:
    """Return a finding, which is ``bad`` where there is something to do."""
    return Finding(what, bad if todo else OK, text, todo)


def engine(info: Mapping[str, Any] | None) -> Finding:
    """Judge the Docker engine by its ``info`` (None: none answers), above all its network."""
    way_out = "use an engine on Linux itself, or --backend process"
    if info is None:
        text = "no engine answers: services run as plain processes"
        return Finding("Docker engine", BEWARE, text, way_out)
    networks = (info.get("Plugins") or {}).get("Network") or []
    is_direct = "host" in networks and "Docker Desktop" not in str(info.get("OperatingSystem", ""))
    network = "host network" if is_direct else "no host network: a proxy is in the path"
    text = f"{info.get('ServerVersion', 'unknown')}, {network}"
    return _judged("Docker engine", text, way_out * (not is_direct))


def room(what: str, folder: Path, free_gb: float) -> Finding:
    """Judge the free space in a folder."""
    todo = "remove old runs and images, or use another disk" * (free_gb < LITTLE_GB)
    bad = WRONG if free_gb < TOO_LITTLE_GB else BEWARE
    return _judged(what, f"{free_gb:,.1f} GB free in {folder}", todo, bad)


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
        text = f"{folder} is in memory ({kind}), where a flush costs nothing"
        return _judged("state folder", text, "PERFLAB_STATE=/var/tmp/... on a real disk", WRONG)
    return _judged("state folder", f"{folder} on {kind or 'an unknown file system'}", "")


def cores(available: Sequence[int]) -> Finding:
    """Tell which roles share a core."""
    shared = placement(available).shared
    if len(available) < 2:
        return _judged("cores", shared, "give the lab at least two cores (cpuset)", WRONG)
    text = shared or f"{len(available)} cores: every role has its own"
    return _judged("cores", text, "with 8 cores every role has its own" * bool(shared))


def switch(known: Switch, value: str) -> Finding:
    """Judge a setting by its value; one that the kernel does not report is no fault."""
    if value == "unknown":
        return _judged(known.what, "the kernel does not report it", "")
    found = {"0": "off", "1": "on"}.get(value, value)
    if value in known.good:
        return _judged(known.what, found, "")
    return _judged(known.what, f"{found}: {known.effect}", known.todo)


def leftover() -> list[Finding]:
    """Tell who measures now, and which services the lab itself has left."""
    busy, others = holder(), other_users()
    up = [f"{item.service} ({item.stack}, {item.backend})" for item in cleanup.everything()]
    folders = [str(folder) for folder in cleanup.orphaned_folders()]
    groups = {"up": up, "left behind by a crash": folders}
    left = "; ".join(f"{state}: {', '.join(of)}" for state, of in groups.items() if of and not busy)
    lock = f"measuring now: {busy}" if busy else "free"
    users = "; ".join(others) or "none measures"
    return [
        _judged("host lock", lock, "wait for its end (--wait)" * bool(busy)),
        _judged("other users", users, "measure when they have ended" * bool(others)),
        _judged("services", left or "none left", "perflab stack down" * bool(left)),
    ]
