"""Programs and packages: Python, what the lock pins, a browser for its tests, a compiler."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping

from perflab.doctor.finding import Finding
from perflab.errors import BackendUnavailable
from perflab.stacks import compilers

OLDEST = (3, 11)
SHOWN = 4
PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==(\S+)", re.M)


def python(version: tuple[int, ...]) -> Finding:
    """Judge the interpreter."""
    shown = ".".join(map(str, version[:3]))
    if version[:2] < OLDEST:
        return Finding("Python", "wrong", shown, "make the environment with Python 3.11 or newer")
    return Finding("Python", "ok", shown)


def packages(lock: str, installed: Mapping[str, str]) -> Finding:
    """Compare what is installed with what the lock pins."""
    # One package may have a version for each version of Python.
    pinned: dict[str, list[str]] = {}
    for name, version in PIN.findall(lock):
        pinned.setdefault(name.lower().replace("_", "-"), []).append(version)
    if not pinned:
        return Finding("packages", "ok", "no lock here to compare with")
    # What is pinned and not installed may be for another system, or of an extra.
    other = [
        f"{name} {installed[name]} (pinned: {' or '.join(versions)})"
        for name, versions in pinned.items()
        if name in installed and installed[name] not in versions
    ]
    if not other:
        return Finding("packages", "ok", "as the lock pins them")
    more = f" and {len(other) - SHOWN} more" if len(other) > SHOWN else ""
    return Finding("packages", "beware", ", ".join(other[:SHOWN]) + more, "make setup")


def browser() -> Finding:
    """Look for the browser that some tests need."""
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    if missing:
        return Finding(
            "browser", "beware", f"not installed: {', '.join(missing)} (only tests need it)",
            "apt-get install chromium chromium-driver",
        )  # fmt: skip
    return Finding("browser", "ok", "chromium and chromedriver")


def compiler() -> Finding:
    """Look for a C++ compiler, which some services need on the process backend."""
    try:
        found = compilers.find()
    except BackendUnavailable as error:
        return Finding(
            "compiler", "beware", "none that runs (compiled services need it)", str(error)
        )
    return Finding("compiler", "ok", found.version)
