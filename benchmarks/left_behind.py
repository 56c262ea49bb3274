"""What commands that were killed may have left, told by their process ids."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def kernel_folders(pids: set[int]) -> list[Path]:
    """Return the folders of kernels' sockets that belong to commands of these ids."""
    found = []
    for folder in Path("/tmp").glob("perflab-kernel-*"):
        with suppress(OSError, ValueError):
            if int((folder / "owner").read_text().split("/")[1]) in pids:
                found.append(folder)
    return found
