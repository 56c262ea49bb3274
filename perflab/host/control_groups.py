"""Control groups (version 1 and 2): where a process's group lies.

Source: the kernel's Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
# Controllers of version 1 that may be mounted with another.
MOUNTS = {"cpuacct": ("cpuacct", "cpu,cpuacct")}


def groups_of(pid: int | str) -> Mapping[str, str]:
    """Return the groups of a process: controller to path ('' is version 2).

    Raises
    ------
    OSError
        The process is gone.
    """
    groups: dict[str, str] = {}
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            groups[controller] = path
    return groups


def folder_of(groups: Mapping[str, str], controller: str) -> Path | None:
    """Return a group's folder under a controller of version 1; None where it has no hierarchy."""
    if controller not in groups:
        return None
    mounted = [each for each in MOUNTS.get(controller, ()) if (ROOT / each).is_dir()]
    return ROOT / (mounted or [controller])[0] / groups[controller].lstrip("/")


def unified_folder(groups: Mapping[str, str]) -> Path:
    """Return a group's folder of version 2."""
    return ROOT / groups.get("", "/").lstrip("/")
