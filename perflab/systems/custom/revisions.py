"""Finds revisions of a git repository by name and reads them by commit, without its work tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

TIMEOUT_S = 30.0


def commit_of(repository: Path, revision: str) -> str:
    """Return the hash of a revision's commit.

    Raises
    ------
    ValueError
        There is no such repository or revision; the message is git's.
    """
    return _git(repository, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")


def holds(repository: Path, commit: str, file: str) -> bool:
    """Return whether a commit has a file."""
    try:
        _git(repository, "cat-file", "-e", f"{commit}:{file}")
    except ValueError:
        return False
    return True


def is_dirty(repository: Path) -> bool:
    """Return whether the work tree has changes that no revision holds."""
    try:
        return bool(_git(repository, "status", "--porcelain"))
    except ValueError:
        # A bare repository has no work tree.
        return False


def extract(repository: Path, commit: str, folder: Path) -> None:
    """Write the files of a commit into a folder; raises ValueError with git's message."""
    archive = folder.with_name(f"{folder.name}.tar")
    try:
        _git(repository, "archive", "--format=tar", f"--output={archive}", commit)
        subprocess.run(["tar", "-xf", archive, "-C", folder], check=True, capture_output=True)
    finally:
        archive.unlink(missing_ok=True)


def _git(repository: Path, *words: str) -> str:
    # Without this option a status would refresh the index of the user's repository.
    command = ["git", "--no-optional-locks", "-C", str(repository), *words]
    try:
        process = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        raise ValueError("git is not installed") from None
    except subprocess.TimeoutExpired:
        raise ValueError(f"git {words[0]} took longer than {TIMEOUT_S:g} s") from None
    if process.returncode:
        message = (process.stderr.strip() or "no such thing").splitlines()[-1]
        raise ValueError(f"{repository}: {message}")
    return process.stdout.strip()
