"""The folders of stacks.

A stack has its logs and records in ``stacks/<stack>`` of the state folder, and its data in
``data/<stack>`` of the open folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from perflab.host.own_folders import check_own, own_folder
from perflab.host.processes import alive, identity
from perflab.host.temporary_folders import is_own
from perflab.paths import open_dir, state_dir
from perflab.stacks.backend import (
    NAME,
    Labels,
    check_name,
    read,
)

OWNER = "owner"


def kept_by(stack: str) -> str:
    """Return the name of the stack that keeps the data with which stores of a stack begin."""
    return f"{stack}.kept"


def make_stack(stack: str) -> Path:
    """Make a stack's folder of logs, and note in it which process made it."""
    check_name(stack, "the stack's name")
    for folder in (state_dir(), state_dir() / "stacks", state_dir() / "stacks" / stack):
        own_folder(folder)
    owner = folder / OWNER
    if not owner.exists():
        owner.write_text(identity(os.getpid()))
    return folder


def make_data(stack: str, service: str) -> Path:
    """Make the folder of a service's data; other users can enter its parents and not list them."""
    check_name(stack, "the stack's name")
    check_name(service, "the service's name")
    open_to_others()
    for folder in (open_dir() / "data", open_dir() / "data" / stack):
        own_folder(folder, 0o711)
    data = open_dir() / "data" / stack / service
    data.mkdir(mode=0o700, exist_ok=True)
    return data


def open_to_others() -> Path:
    """Make the open folder: root's servers run as another user, who must pass through it."""
    return own_folder(open_dir(), 0o700 if open_dir() == state_dir() else 0o711)


def log_path(stack: str, service: str) -> Path:
    """Return the path of the log of a service that runs as a process."""
    return state_dir() / "stacks" / stack / f"{service}.log"


def tail(path: Path, lines: int) -> str:
    """Return the last lines of a text file, or an empty string when there is none."""
    with contextlib.suppress(OSError), path.open(errors="replace") as file:
        return "".join(deque(file, lines)).rstrip("\n")
    return ""


def record(folder: Path, labels: Labels, pid: int) -> None:
    """Note a server whose environment cannot be read, or has no labels."""
    note = {**labels.as_environment(), "IDENTITY": identity(pid)}
    (folder / f"{labels.service}.{pid}.server").write_text(json.dumps(note))


def recorded() -> Iterator[tuple[int, Labels]]:
    """Yield the process id and labels of every recorded server that still runs."""
    for folder in folders():
        try:
            paths = list(folder.glob("*.server"))
        except FileNotFoundError:
            continue  # Its owner removed it since it was listed.
        for path in paths:
            try:
                note = json.loads(path.read_text())
                pid = alive(note["IDENTITY"])
            except (OSError, ValueError, LookupError):
                continue  # A crash cut the file short.
            if pid is not None:
                yield pid, read(note, "environment")


def folders() -> list[Path]:
    """Return the folders of stacks; links, and names that no stack can have, are left out.

    Raises UnsafePlace where the state folder is not the user's own.
    """
    root = state_dir() / "stacks"
    try:
        check_own(root)
        paths = sorted(root.iterdir())
    except FileNotFoundError:
        return []
    return [path for path in paths if NAME.fullmatch(path.name) and is_own(path)]


def remove_folders(stack: str) -> None:
    """Remove a stack's logs and data.

    Raises LabelProblem where no stack can have the name, and UnsafePlace where the state folder is
    not the user's own.
    """
    check_name(stack, "the stack's name")
    for root in (state_dir() / "stacks", open_dir() / "data"):
        try:
            check_own(root)
        except FileNotFoundError:
            continue
        # rmtree refuses a link of that name.
        shutil.rmtree(root / stack, ignore_errors=True)
