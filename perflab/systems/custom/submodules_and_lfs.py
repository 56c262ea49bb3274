"""Files of a commit that its repository does not hold: those of submodules, and of Git LFS.

Both are taken from what the user's repository has fetched before, and nothing is written to it. LFS
keeps a file's contents under their digest, so that no program of LFS is needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from perflab.statistics.in_words import first_of
from perflab.systems.custom.revisions import git

GREP_S = 600.0
USED, ATTRIBUTES = "filter=lfs", ".gitattributes"
# A pointer stands in the repository in a file's place; its second line has the digest.
POINTER = b"version https://git-lfs.github.com/spec/v1\n"
DIGEST, DIGEST_LINE = "^oid sha256:[0-9a-f]{64}$", "2"
# A commit has a submodule as an entry of this mode, and its name in this file; one with this
# update is left out.
LINK, FILE, LEFT_OUT = "160000", ".gitmodules", "none"
UPDATE = "git submodule update --init --recursive"


@dataclass(frozen=True)
class Submodule:
    """A folder of a commit, the repository that holds it, and its commit there."""

    path: str
    repository: Path
    commit: str


def check_whole(repository: Path, commit: str) -> None:
    """Raise ValueError, which says how to get them, where files of a commit are not here."""
    missing = [path for path, kept in pointers(repository, commit).items() if not kept.is_file()]
    if missing:
        raise ValueError(
            f"Git LFS keeps files of {commit:.9} that are not here ({first_of(missing, 1)}): "
            f"install git-lfs, and run 'git lfs fetch origin {commit}' in {repository}"
        )
    for each in submodules(repository, commit):
        check_whole(each.repository, each.commit)


def submodules(repository: Path, commit: str) -> tuple[Submodule, ...]:
    """Return the submodules of a commit, but those that the user's configuration leaves out.

    Raises ValueError where one was not fetched.
    """
    found = []
    for path, name in _names(repository, commit).items():
        entry = _read(repository, "ls-tree", "--full-tree", commit, "--", path).split()
        if entry[:1] == [LINK] and not _is_left_out(repository, name):
            found.append(Submodule(path, _repository(repository, path, name, entry[2]), entry[2]))
    return tuple(found)


@lru_cache
def pointers(repository: Path, commit: str) -> dict[str, Path]:
    """Return the files of a commit that LFS keeps, and where it keeps their contents."""
    if not _grep(repository, "-l", "-e", USED, commit, "--", f"*{ATTRIBUTES}"):
        return {}
    common = repository / _read(repository, "rev-parse", "--git-common-dir")
    store = common / _read(repository, "config", "--default", "lfs", "--get", "lfs.storage")
    kept = {}
    for line in _grep(repository, "-n", "-z", "-E", "-e", DIGEST, commit).splitlines():
        path, number, text = line.removeprefix(f"{commit}:").split("\0")
        if number == DIGEST_LINE:
            digest = text.partition(":")[2]
            kept[path] = (store / "objects" / digest[:2] / digest[2:4] / digest).resolve()
    return kept


def submodules_of_tree(top: Path) -> list[Path]:
    """Return the folders of a working tree that are submodules, but those that are left out.

    Raises ValueError where one was not fetched.
    """
    if not (top / FILE).is_file():
        return []
    names = _names(top)
    entries = [line.split("\t", 1) for line in git(top, "ls-files", "-s", "-z").split("\0") if line]
    links = [path for about, path in entries if about.startswith(LINK) and path in names]
    found = [path for path in links if not _is_left_out(top, names[path])]
    for path in found:
        if not (top / path / ".git").exists():
            raise ValueError(_not_here(path, names[path], top))
    return [Path(path) for path in found]


def refuse_pointers(top: Path, names: Iterable[Path]) -> None:
    """Raise ValueError where files of a working tree are pointers, for lack of what LFS keeps."""
    listed = list(names)
    rules = [top / name for name in listed if name.name == ATTRIBUTES]
    if not any(USED in path.read_text(errors="replace") for path in rules):
        return
    found = [str(name) for name in listed if _is_pointer(top / name)]
    if found:
        raise ValueError(
            f"files in {top} are only pointers of Git LFS ({first_of(found, 1)}): install "
            "git-lfs, and run 'git lfs pull' there"
        )


def _is_pointer(path: Path) -> bool:
    if path.is_symlink():
        return False
    with path.open("rb") as file:
        return file.read(len(POINTER)) == POINTER


def _names(repository: Path, commit: str = "") -> dict[str, str]:
    """Return the names of submodules by their paths, as a commit or the working tree has them."""
    if commit and not _read(repository, "ls-tree", "--full-tree", commit, FILE):
        return {}
    place = ("--blob", f"{commit}:{FILE}") if commit else ("--file", FILE)
    words = ("config", *place, "-z", "--get-regexp", r"^submodule\..*\.path$")
    pairs = (entry.split("\n", 1) for entry in _read(repository, *words).split("\0") if entry)
    return {path: key[len("submodule.") : -len(".path")] for key, path in pairs}


def _is_left_out(repository: Path, name: str) -> bool:
    words = ("config", "--default", "", "--get", f"submodule.{name}.update")
    return _read(repository, *words) == LEFT_OUT


def _repository(above: Path, path: str, name: str, commit: str) -> Path:
    """Return where the user's repository keeps a submodule that has the commit.

    ValueError has the command that gets what is not here.
    """
    # A linked worktree keeps submodules of its own, apart from those of the repository.
    common = _read(above, "rev-parse", "--git-common-dir")
    places = [
        _read(above, "rev-parse", "--git-path", f"modules/{name}"),
        f"{common}/modules/{name}",
    ]
    there = [place for each in places if (place := (above / each).resolve()).is_dir()]
    for place in there:
        try:
            _read(place, "cat-file", "-e", f"{commit}^{{commit}}")
        except ValueError:
            continue
        return place
    if there:
        command = f"git --git-dir={there[0]} fetch origin {commit}"
        raise ValueError(f"the submodule '{path}' lacks its commit {commit:.9}: run '{command}'")
    raise ValueError(_not_here(path, name, above))


def _not_here(path: str, name: str, repository: Path) -> str:
    return (
        f"the submodule '{path}' is not here: run '{UPDATE}' in {repository}, or, if the service "
        f"does without it, 'git config submodule.{name}.update {LEFT_OUT}'"
    )


def _grep(repository: Path, *words: str) -> str:
    """Return what git finds in a commit; empty where that is nothing."""
    try:
        return _read(repository, "grep", *words, timeout_s=GREP_S)
    except ValueError:
        return ""


def _read(repository: Path, *words: str, timeout_s: float = 30.0) -> str:
    """Read a repository that may be a submodule's, whose folder is not checked out now."""
    return git(repository, "--work-tree=.", *words, timeout_s=timeout_s)
