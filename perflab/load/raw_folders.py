"""Temporary folders of raw rows: they go with their owner, unless a user has been told of them."""

from __future__ import annotations

from pathlib import Path

from perflab.host.temporary_folders import OWNER, temporary_folder

KIND = "load"


def raw_folder() -> Path:
    """Make a temporary folder of this process, and remove those of processes that have ended.

    It lies where ``TMPDIR`` says. See :func:`keep` for one that is to outlive this process.

    Raises
    ------
    OSError
        It cannot be made.
    """
    return temporary_folder(KIND)


def keep(folder: Path) -> None:
    """Let a folder outlive its owner: a user has been told of it."""
    (folder / OWNER).unlink(missing_ok=True)
