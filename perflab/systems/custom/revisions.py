"""Reads a user's git repository: commits of revisions, merge bases, changes; it writes nothing."""

from __future__ import annotations

import os
import re
import subprocess
from functools import lru_cache
from pathlib import Path

from perflab.parameters import did_you_mean
from perflab.project import WRITTEN

COMMIT = re.compile("[0-9a-f]{40}")
BRANCHES = '"+refs/heads/*:refs/remotes/origin/*"'
TIMEOUT_S = 30.0
# Git sets them in its hooks, and would then read another repository than the one that is named.
OF_A_HOOK = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")


def commit_of(repository: Path, revision: str) -> str:
    """Return the commit of a revision; ValueError where it is missing says how to get it."""
    found = _known if COMMIT.fullmatch(revision) else _commit
    if not (commit := found(repository, revision)):
        raise ValueError(_missing(repository, revision))
    return commit


def against(folder: Path, revision: str, working_tree: bool) -> list[str]:
    """Return the variants old and new: the merge base with a revision, and what stands here.

    New is the commit that is checked out, or the working tree with its uncommitted changes. A
    revision that is only known of the remote ``origin`` is taken from there.

    Raises ValueError where there is no such revision, no common history, or nothing to compare.
    """
    head = commit_of(folder, "HEAD")
    other = _commit(folder, revision) or _commit(folder, f"origin/{revision}")
    if not other:
        raise ValueError(_missing(folder, revision))
    base = merge_base(folder, other, head)
    if not base:
        cut_off = f"; its history was cut off: run '{_fetch(folder, revision)}'"
        raise ValueError(
            f"HEAD and '{revision}' have no common commit here" + cut_off * _is_shallow(folder)
        )
    if working_tree:
        return [f"old=git:{folder}@{base}", f"new=tree:{folder}"]
    if base == head:
        raise ValueError(
            f"HEAD ({head:.9}) has no commit that '{revision}' lacks: commit your change, or "
            "compare the files as they are (--working-tree)"
        )
    return [f"old=git:{folder}@{base}", f"new=git:{folder}@{head}"]


def _commit(repository: Path, revision: str) -> str:
    """Return the commit that a revision names; empty where there is none."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    try:
        return git(repository, *words)
    except ValueError:
        # It raises where this is no repository.
        git(repository, "rev-parse", "--git-dir")
        return ""


@lru_cache
def _known(repository: Path, commit: str) -> str:
    """Return a whole commit: parameters that were checked are read again and again."""
    return _commit(repository, commit)


def _missing(repository: Path, revision: str) -> str:
    """Return that a revision is missing, and how to get it."""
    text = f"{repository} has no revision '{revision}'"
    remote = f"origin/{revision}"
    if _commit(repository, remote):
        return f"{text}, but {remote}: name that one"
    if _is_shallow(repository):
        return f"{text}, and its history was cut off: run '{_fetch(repository, revision)}' in it"
    known = git(repository, "for-each-ref", "--format=%(refname:short)").splitlines()
    hint = did_you_mean(revision, known)
    return f"{text}{hint}: if it is elsewhere, run '{_fetch(repository, revision)}' in it"


def _is_shallow(repository: Path) -> bool:
    return git(repository, "rev-parse", "--is-shallow-repository") == "true"


def _fetch(repository: Path, revision: str) -> str:
    """Return the command that fetches a revision, and all history that was cut off.

    It names all branches: a clone of one branch fetches no other by itself.
    """
    deepens = " --unshallow" * _is_shallow(repository)
    wanted = revision if COMMIT.fullmatch(revision) else BRANCHES
    return f"git fetch{deepens} --tags origin {wanted}"


def holds(repository: Path, commit: str, file: str) -> bool:
    """Return whether a commit has a file in the folder of the repository that is named."""
    try:
        git(repository, "cat-file", "-e", f"{commit}:./{file}")
    except ValueError:
        return False
    return True


def is_dirty(repository: Path) -> bool:
    """Return whether the work tree has changes that no revision holds.

    What makes a folder a project of the lab is no part of the service.
    """
    others = [f":(top,exclude,glob)**/{name}" for name in WRITTEN]
    try:
        return bool(git(repository, "status", "--porcelain", "--", ":/", *others))
    except ValueError:
        # A bare repository has no work tree.
        return False


def merge_base(repository: Path, old: str, new: str) -> str:
    """Return the last common ancestor of two commits; empty where there is none."""
    try:
        return git(repository, "merge-base", old, new)
    except ValueError:
        return ""


@lru_cache
def top_of(folder: Path) -> tuple[Path, Path]:
    """Return the top of the work tree that a folder is in, and the folder's path below it.

    A folder that is in no work tree is a top.
    """
    try:
        top = Path(git(folder, "rev-parse", "--show-toplevel"))
    except ValueError:
        return folder, Path()
    return top, folder.resolve().relative_to(top.resolve())


def git(repository: Path, *words: str, timeout_s: float = TIMEOUT_S) -> str:
    """Return what git prints; raises ValueError with its message."""
    # Without this option a status would refresh the index of the user's repository.
    command = ["git", "--no-optional-locks", "-C", str(repository), *words]
    environment = {name: text for name, text in os.environ.items() if name not in OF_A_HOOK}
    try:
        process = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=timeout_s,
            env=environment,
        )
    except FileNotFoundError:
        raise ValueError("git is not installed") from None
    except subprocess.TimeoutExpired:
        raise ValueError(f"git {words[0]} took longer than {timeout_s:g} s") from None
    if process.returncode:
        raise ValueError(f"{repository}: {_message(process.stderr)}")
    return process.stdout.rstrip("\n")


def _message(errors: str) -> str:
    """Return the line of git's errors that says what is wrong, and a way out where one is known."""
    lines = errors.strip().splitlines() or ["no such thing"]
    fatal = next((line for line in lines if line.startswith("fatal:")), lines[-1])
    if "dubious ownership" in fatal:
        return f"{fatal}; if you trust its owner, run '{lines[-1].strip()}'"
    if "not a git repository" in fatal:
        return f"{fatal}; name the folder of one, or files as they are (tree:FOLDER)"
    return fatal
