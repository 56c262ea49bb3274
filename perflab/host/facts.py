"""Facts of the machine and of the code, for the record and for the check before a resume."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from perflab.host.fingerprint import of_all, sources
from perflab.paths import project_root


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text().strip().splitlines()[0]
    except (OSError, IndexError):
        return "unknown"


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def machine() -> dict[str, Any]:
    """Return what must be equal for two trials to be comparable."""
    return {
        "cpu": _cpu_model(),
        # Not this process's affinity: the conductor is bound to the sampler's core.
        "cores": os.cpu_count() or 1,
        "memory_bytes": psutil.virtual_memory().total,
        "kernel": platform.release(),
    }


def environment() -> dict[str, Any]:
    """Return the machine and the versions that a reader of the record may ask for."""
    return {
        "machine": machine(),
        "system": platform.platform(),
        "python": sys.version.split()[0],
        "governor": _first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "turbo": _turbo(),
        "clock_source": _first_line(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource"
        ),
        "load_average": list(os.getloadavg()),
        "packages": installed(),
    }


def _turbo() -> str:
    """Return whether the clock rate may rise above its base: on, off or unknown."""
    off = _first_line("/sys/devices/system/cpu/intel_pstate/no_turbo")
    boost = _first_line("/sys/devices/system/cpu/cpufreq/boost")
    if off in "01":
        return "off" if off == "1" else "on"
    return {"1": "on", "0": "off"}.get(boost, "unknown")


def installed() -> dict[str, str]:
    """Return the versions of all packages that are installed beside the lab, by name."""
    packages = metadata.distributions()
    versions = {item.name.lower().replace("_", "-"): item.version for item in packages}
    return dict(sorted(versions.items()))


def session() -> dict[str, Any]:
    """Return this boot's id and a pair of clocks, so that monotonic instants can be dated."""
    return {
        "boot_id": _first_line("/proc/sys/kernel/random/boot_id"),
        "monotonic_ns": time.monotonic_ns(),
        "realtime_ns": time.time_ns(),
        "pid": os.getpid(),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def code(systems: Iterable[str] | None = None) -> dict[str, Any]:
    """Return commit, whether the checkout is dirty, and a fingerprint of what measures.

    ``systems`` are those whose own sources count (all unless given). ``sources`` has a fingerprint
    for each place of it; see :mod:`perflab.host.fingerprint`.
    """
    places = sources(systems)
    return {
        "commit": _git("rev-parse", "HEAD") or "no commit",
        "dirty": bool(_git("status", "--porcelain", "--", "perflab", "services")),
        "fingerprint": of_all(places),
        "sources": places,
    }


def _git(*words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(project_root()), *words],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
