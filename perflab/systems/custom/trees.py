"""The files of a variant: a commit, or a working tree with its uncommitted changes, as a folder.

A commit is checked out into a repository of its own, which borrows the objects of the user's. So
tools find tags and versions, ``export-ignore`` leaves nothing out, no hook runs, and nothing is
written to the user's repository: ``git worktree`` would do both.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from tempfile import NamedTemporaryFile

from perflab.host.own_folders import own_folder
from perflab.paths import state_dir
from perflab.project import RESULTS
from perflab.stacks.builds import made
from perflab.stacks.commands import never, run_command
from perflab.systems.custom.revisions import git, top_of
from perflab.systems.custom.submodules_and_lfs import (
    pointers,
    refuse_pointers,
    submodules,
    submodules_of_tree,
)

TIMEOUT_S = 600.0
# Of the digest of a working tree: as many as a commit has.
DIGITS = 40
# $1 is the folder to fill.
REPOSITORY = """set -eu
unset $(git rev-parse --local-env-vars)
cd "$1"
theirs() {{ git -C {repository} --work-tree=. "$@"; }}
objects=$(cd {repository} && cd "$(theirs rev-parse --git-path objects)" && pwd)
shallow=$(cd {repository} && realpath "$(theirs rev-parse --git-path shallow)")
git init --quiet --template= .
echo "$objects" > .git/objects/info/alternates
if [ -f "$shallow" ]; then cp "$shallow" .git/shallow; fi
theirs for-each-ref --format='create %(refname) %(objectname)' refs/tags |
    git update-ref --stdin
git update-ref --no-deref HEAD {commit}
"""
# Of what LFS keeps elsewhere the pointers are checked out: there is no remote to ask.
CHECKED_OUT = """
GIT_LFS_SKIP_SMUDGE=1 git -c core.hooksPath=/dev/null checkout --quiet --force --detach {commit}
"""
# $1 is the folder of a submodule within; git is to take the contents for what the pointers name.
WITHIN = '(\nset -- "$1"/{path}\n{script})\n'
OF_LFS = "cp -- {kept} {path}\n"
UNCHANGED = "printf '%s\\0' {paths} | git update-index --assume-unchanged -z --stdin\n"
COPIED = 'set -eu\ncp -a {tree}/. "$1"\ncd "$1"\n'
INDEX = "git read-tree HEAD\n"
# Within a working tree: results of the lab, which are no part of the service.
OF_THE_LAB = (RESULTS["runs"], RESULTS["sweeps"], ".git")


def script_of_commit(repository: Path, commit: str) -> str:
    """Return a shell script that fills the folder ``$1`` with a commit and enters it."""
    words = {"repository": shlex.quote(str(repository)), "commit": commit}
    script = (REPOSITORY + CHECKED_OUT).format(**words)
    of_lfs = {shlex.quote(path): kept for path, kept in pointers(repository, commit).items()}
    for path, kept in of_lfs.items():
        script += OF_LFS.format(kept=shlex.quote(str(kept)), path=path)
    if of_lfs:
        script += UNCHANGED.format(paths=" ".join(of_lfs))
    for each in submodules(repository, commit):
        within = script_of_commit(each.repository, each.commit)
        script += WITHIN.format(path=shlex.quote(each.path), script=within)
    return script


def script_of_tree(digest: str) -> str:
    """Return a shell script that fills the folder ``$1`` with a kept working tree and enters it."""
    return COPIED.format(tree=shlex.quote(str(_kept(digest))))


def without_repository(script: str, folder: Path) -> None:
    """Fill a folder by a script, without its repositories; ValueError with the last message."""
    _run(f'{script}find "$1" -name .git -prune -exec rm -rf {{}} +', folder)


def _run(script: str, folder: Path) -> None:
    during = "while files of a variant were copied"
    # A script that is an argument may not be long.
    with NamedTemporaryFile("w", suffix=".sh") as file:
        file.write(script)
        file.flush()
        words = ["sh", file.name, str(folder)]
        try:
            done = run_command(words, never, during, os.environ, timeout_s=TIMEOUT_S)
        except TimeoutError:
            raise ValueError(f"to copy its files took longer than {TIMEOUT_S:g} s") from None
    if done.returncode:
        raise ValueError(done.stderr.strip()[-500:])


def keep(folder: Path) -> str:
    """Copy the working tree that a folder is in, and return the digest of its files.

    Files that git ignores are left out, as are the lab's own results. Raises ValueError where files
    change meanwhile, or some of a submodule or of LFS are not here.
    """
    top, _ = top_of(folder)
    commit, names = _head(top), _names(top)
    refuse_pointers(top, names)
    digest = _digest(top, commit, names)

    def make(target: Path) -> None:
        if commit:
            words = {"repository": shlex.quote(str(top)), "commit": commit}
            _run((REPOSITORY + INDEX).format(**words), target)
        for name in names:
            copy = target / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(top / name, copy, follow_symlinks=False)
        if _digest(target, commit, names) != digest:
            raise ValueError(f"files of {top} changed while they were copied; end what writes them")

    made(_kept(digest), make)
    return digest


@lru_cache
def is_kept(digest: str, folder: Path) -> bool:
    """Return whether a working tree of this digest was kept, or stands in the folder."""
    return _kept(digest).is_dir() or keep(folder) == digest


def kept_in(digest: str, folder: Path) -> Path:
    """Return the folder of a kept working tree that stands for ``folder``."""
    return _kept(digest) / top_of(folder)[1]


def _kept(digest: str) -> Path:
    return own_folder(own_folder(state_dir()) / "trees") / digest


def _head(top: Path) -> str:
    try:
        return git(top, "rev-parse", "--verify", "--quiet", "HEAD")
    except ValueError:
        return ""


def _digest(top: Path, commit: str, names: Sequence[Path]) -> str:
    """Return a hash over the commit and the paths, modes and contents of files."""
    digest = hashlib.sha256(commit.encode())
    for name in names:
        path = top / name
        is_link = path.is_symlink()
        content = os.fsencode(path.readlink()) if is_link else path.read_bytes()
        mode = "link" if is_link else "program" if path.stat().st_mode & 0o100 else "file"
        digest.update(os.fsencode(name) + f"\0{mode}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:DIGITS]


def _names(top: Path) -> list[Path]:
    """Return the files of a working tree, sorted, but those that git ignores."""
    listed = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    try:
        names = [Path(name) for name in git(top, *listed).split("\0") if name]
    except ValueError:
        names = [path.relative_to(top) for path in top.rglob("*")]
    else:
        names += [each / name for each in submodules_of_tree(top) for name in _names(top / each)]
    return [
        name
        for name in sorted({*names})
        if set(name.parts).isdisjoint(OF_THE_LAB)
        and ((top / name).is_symlink() or (top / name).is_file())
    ]
