"""Facts of the machine and of the code, for the record and for the check before a resume."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from perflab.paths import FOREIGN, foreign_dirs, foreign_systems, is_checkout, project_root

# The code that measures and the services; the locks say from what both were installed. Notebooks
# and figures may change between two halves of a run.
PACKAGE = Path(__file__).resolve().parents[1]
LOCKS = "*.lock"
# An installed package holds the parts of a checkout, which are places of their own.
NO_SOURCES = {"__pycache__", ".git", ".venv", ".ipynb_checkpoints", "checkout"}
LENGTH = 16
CPU = "/sys/devices/system/cpu"
CLOCK = "/sys/devices/system/clocksource/clocksource0"


def sources(systems: Iterable[str] | None = None) -> dict[str, str]:
    """Return a SHA-256 of each place: the package, the services, each lock, foreign systems.

    Foreign systems are left out where none of ``systems`` is foreign (None: they are in).
    """
    root = project_root()
    package = root / "perflab"
    places = {"perflab": package if package.is_dir() else PACKAGE, "services": root / "services"}
    places |= {path.name: path for path in sorted(root.glob(LOCKS))}
    if systems is None or foreign_systems().keys() & set(systems):
        # The names hold no paths: the same sources in another folder give the same fingerprint.
        places |= {f"{FOREIGN} {number}": path for number, path in enumerate(foreign_dirs(), 1)}
    return {name: _fingerprint(path) for name, path in places.items()}


def _fingerprint(place: Path) -> str:
    digest = hashlib.sha256()
    for path in _files(place):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(place).as_posix()}\0{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:LENGTH]


def _files(place: Path) -> Iterator[Path]:
    """Yield the files of a folder, sorted and without caches; of a file, yield the file itself."""
    if place.is_file():
        yield place
        return
    for path in sorted(place.rglob("*")):
        if path.is_file() and not NO_SOURCES.intersection(path.relative_to(place).parts):
            yield path


def first_line(path: str, otherwise: str = "unknown") -> str:
    """Return the first line of one of the kernel's files."""
    try:
        return Path(path).read_text().strip().splitlines()[0]
    except (OSError, IndexError):
        return otherwise


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or "unknown")


def machine() -> dict[str, Any]:
    """Return the facts that must be equal for two trials to be comparable."""
    return {
        "cpu": _cpu_model(),
        # Not this process's affinity: the conductor is bound to the sampler's core.
        "cores": os.cpu_count() or 1,
        "memory_bytes": psutil.virtual_memory().total,
        "kernel": platform.release(),
    }


def environment() -> dict[str, Any]:
    """Return the machine and the versions, for readers of the record."""
    return {
        "machine": machine(),
        "system": platform.platform(),
        "python": sys.version.split()[0],
        "prefix": sys.prefix,
        **switches(),
        "packages": installed(),
    }


def switches() -> dict[str, str]:
    """Return the settings of this machine that bear on measurements, by their names in a record.

    One that the kernel does not report is ``unknown``.
    """
    off, boost = first_line(f"{CPU}/intel_pstate/no_turbo"), first_line(f"{CPU}/cpufreq/boost")
    turbo = {"1": "off", "0": "on"}.get(off) or {"1": "on", "0": "off"}.get(boost, "unknown")
    return {
        "governor": first_line(f"{CPU}/cpu0/cpufreq/scaling_governor"),
        "turbo": turbo,
        "clock_source": first_line(f"{CLOCK}/current_clocksource"),
    }


@cache
def installed() -> dict[str, str]:
    """Return the versions of all packages in the lab's environment, by name."""
    packages = versions(metadata.distributions())
    return dict(sorted((name.lower().replace("_", "-"), packages[name]) for name in packages))


def versions(distributions: Iterable[metadata.Distribution]) -> dict[str, str]:
    """Return versions by name; a folder that half a removal left behind has none."""
    found = {}
    for item in distributions:
        # Where importlib_metadata is imported it reads them, and raises instead.
        with suppress(TypeError):
            told = item.metadata
            if told["Name"]:
                found[told["Name"]] = told["Version"]
    return found


def session() -> dict[str, Any]:
    """Return this boot's id and two clocks, by which a reader can date monotonic instants."""
    return {
        "boot_id": first_line("/proc/sys/kernel/random/boot_id"),
        "monotonic_ns": time.monotonic_ns(),
        "realtime_ns": time.time_ns(),
        "pid": os.getpid(),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def code(systems: Iterable[str] | None = None) -> dict[str, Any]:
    """Return the commit, whether the checkout is dirty, and the :func:`sources` of ``systems``."""
    places = sources(systems)
    text = json.dumps(places, sort_keys=True)
    commit, dirty = _commit()
    return {
        "commit": commit or "no commit",
        "dirty": dirty,
        "fingerprint": hashlib.sha256(text.encode()).hexdigest()[:LENGTH],
        "sources": places,
    }


def _commit() -> tuple[str, bool]:
    """Return the lab's commit, and whether its files differ from it; a wheel was told when made."""
    if is_checkout():
        changed = _git("status", "--porcelain", "--", "perflab", "services")
        # Where git does not say, nobody knows that nothing was changed.
        return _git("rev-parse", "HEAD") or "", changed != ""
    try:
        commit, _, dirty = (project_root() / "COMMIT").read_text().partition(" ")
    except OSError:
        return "", False
    return commit, bool(dirty)


def _git(*words: str) -> str | None:
    command = ["git", "-C", str(project_root()), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
