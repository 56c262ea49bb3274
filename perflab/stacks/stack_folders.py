"""The folders of stacks: who made each, which servers run as another user, and their removal.

A stack has its logs and records in ``stacks/<stack>`` of the state folder, and its data in
``data/<stack>`` of the open one.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from perflab.host.own_folders import check_own, own_folder
from perflab.host.processes import alive, identity
from perflab.paths import open_dir, state_dir
from perflab.stacks.labels import NAME, Labels, check_name, read

OWNER = "owner"


def make_stack(stack: str) -> Path:
    """Make a stack's folder of logs, with a word on which process made it."""
    check_name(stack, "the stack's name")
    for folder in (state_dir(), state_dir() / "stacks", state_dir() / "stacks" / stack):
        own_folder(folder)
    owner = folder / OWNER
    if not owner.exists():
        owner.write_text(identity(os.getpid()))
    return folder


def make_data(stack: str, service: str) -> Path:
    """Make the folder of a service's data; another user can pass through to it, not look."""
    check_name(stack, "the stack's name")
    check_name(service, "the service's name")
    open_to_others()
    for folder in (open_dir() / "data", open_dir() / "data" / stack):
        own_folder(folder, 0o711)
    data = open_dir() / "data" / stack / service
    data.mkdir(mode=0o700, exist_ok=True)
    return data


def open_to_others() -> Path:
    """Make the open folder: where root's servers run as another user, that user passes through."""
    return own_folder(open_dir(), 0o700 if open_dir() == state_dir() else 0o711)


def log_path(stack: str, service: str) -> Path:
    """Return where a service of a stack writes its log, as a process."""
    return state_dir() / "stacks" / stack / f"{service}.log"


def tail(path: Path, lines: int) -> str:
    """Return the last lines of a text file, or an empty string when there is none."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 64 * 1024))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""


def record(folder: Path, labels: Labels, pid: int) -> None:
    """Note a server that runs as another user, and is therefore not found by its environment."""
    noted = {**labels.as_environment(), "IDENTITY": identity(pid)}
    (folder / f"{labels.service}.server").write_text(json.dumps(noted))


def recorded() -> Iterator[tuple[int, Labels]]:
    """Yield every recorded server that is alive, the same process as then."""
    for folder in folders():
        for path in folder.glob("*.server"):
            try:
                noted = json.loads(path.read_text())
                pid = alive(noted["IDENTITY"])
            except (OSError, ValueError, LookupError):
                continue  # cut short by a crash
            if pid is not None:
                yield pid, read(noted, "environment")


def folders() -> list[Path]:
    """Return the folders of stacks: their names can be stacks', and none is a link.

    Raises UnsafePlace where the state folder is not one's own.
    """
    root = state_dir() / "stacks"
    try:
        check_own(root)
        paths = sorted(root.iterdir())
    except FileNotFoundError:
        return []
    return [path for path in paths if NAME.fullmatch(path.name) and _is_own_folder(path)]


def _is_own_folder(path: Path) -> bool:
    facts = path.lstat()
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid()


def maker_of(folder: Path) -> int | None:
    """Return the process that made a stack's folder while it lives, else None."""
    try:
        return alive((folder / OWNER).read_text())
    except (OSError, ValueError):
        return None


def remove_stack(stack: str) -> None:
    """Remove a stack's logs and data.

    Raises LabelProblem where the name cannot be a stack's, and UnsafePlace where the state folder
    is not one's own; nothing was removed then.
    """
    check_name(stack, "the stack's name")
    for root in (state_dir() / "stacks", open_dir() / "data"):
        try:
            check_own(root)
        except FileNotFoundError:
            continue
        # A link of that name is not followed: rmtree refuses it.
        shutil.rmtree(root / stack, ignore_errors=True)
