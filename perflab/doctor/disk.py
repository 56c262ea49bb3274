"""Room for recordings and databases, on a disk and not in memory."""

from __future__ import annotations

from pathlib import Path

from perflab.doctor.finding import Finding, Machine, State

LITTLE_GB, TOO_LITTLE_GB = 5.0, 0.5
IN_MEMORY = ("tmpfs", "ramfs")


def room(what: str, folder: Path, free_bytes: int) -> Finding:
    """Judge the room in a folder."""
    free_gb = free_bytes / 1e9
    shown = f"{free_gb:,.1f} GB free in {folder}"
    if free_gb >= LITTLE_GB:
        return Finding(what, "ok", shown)
    state: State = "wrong" if free_gb < TOO_LITTLE_GB else "beware"
    return Finding(what, state, shown, "remove old runs and images, or take another disk")


def database_disk(machine: Machine, folder: Path) -> Finding:
    """Judge whether what a database flushes there reaches a disk."""
    kind = kind_of(machine, folder)
    if kind in IN_MEMORY:
        return Finding(
            "state folder", "wrong", f"{folder} is in memory ({kind}): a flush costs nothing there",
            "PERFLAB_STATE=/var/tmp/... on a real disk",
        )  # fmt: skip
    return Finding("state folder", "ok", f"{folder} on {kind or 'a file system unknown'}")


def kind_of(machine: Machine, folder: Path) -> str:
    """Return the file system that a folder is on: that of the longest mount point above it."""
    mounts = [line.split() for line in machine.text("/proc/mounts").splitlines()]
    above = [
        (len(Path(words[1]).parts), number, words[2])
        for number, words in enumerate(mounts)
        if len(words) > 2 and folder.is_relative_to(words[1].replace("\\040", " "))
    ]
    # Of two mounts on one point the later one is seen.
    return max(above)[2] if above else ""
