"""Reads and checks variants, which are written ``NAME=KIND:WHAT``, and finds their revisions.

Places become absolute paths and revisions commits. A repository is read without its work tree.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from perflab.errors import TargetRefused
from perflab.load.clients.targets import split
from perflab.parameters import did_you_mean

KINDS = {
    "git": "REPOSITORY@REVISION",
    "command": "WORDS",
    "url": "http://HOST:PORT",
    "image": "NAME:TAG",
    "dockerfile": "FOLDER",
}
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,30}")
# The CPU of the load's own processes is recorded under these names.
TAKEN = ("client", "lab")
PLACEHOLDER = re.compile(r"\{([a-z_]+(?:\.[a-z_]+)?)\}")
KNOWN = ("port", "host")
COMMIT = re.compile("[0-9a-f]{40}")
TIMEOUT_S, EXTRACT_TIMEOUT_S = 30.0, 600.0


@dataclass(frozen=True)
class Variant:
    """One variant: ``place`` is a repository, a folder, an address, an image or a command."""

    name: str
    kind: str
    place: str
    commit: str = ""

    @property
    def text(self) -> str:
        """Return the variant as it is written, with an absolute path and a commit."""
        return f"{self.name}={self.kind}:{self.place}" + (f"@{self.commit}" if self.commit else "")

    @property
    def label(self) -> str:
        """Return the variant's name in figures."""
        return f"{self.name} ({self.commit[:9]})" if self.commit else self.name


def all_variants(texts: Iterable[str], folder: Path) -> tuple[Variant, ...]:
    """Read all variants; relative places begin at ``folder``.

    Raises
    ------
    ValueError
        A variant is wrong; the message has every problem of every variant.
    """
    variants, problems = [], []
    for text in texts:
        try:
            variants.append(_variant_of(text, folder))
        except ValueError as error:
            problems.append(str(error))
    names = [variant.name for variant in variants]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        problems.append(f"two variants are named {', '.join(twice)}; give each another name")
    if problems:
        raise ValueError("; ".join(problems))
    return tuple(variants)


def _variant_of(text: str, folder: Path) -> Variant:
    name, equals, rest = text.partition("=")
    kind, colon, place = rest.partition(":")
    if not (equals and colon and place.strip()):
        raise ValueError(f"'{text}' is not NAME=KIND:WHAT, like new=git:.@HEAD")
    if not NAME.fullmatch(name) or name in TAKEN:
        raise ValueError(
            f"'{name}' cannot be the name of a variant: use up to 31 letters, digits, '.', '_' or "
            f"'-', but not {' or '.join(TAKEN)}"
        )
    if kind not in KINDS:
        kinds = ", ".join(f"{known}:{form}" for known, form in KINDS.items())
        raise ValueError(
            f"{name}: there is no kind '{kind}'{did_you_mean(kind, KINDS)}; kinds: {kinds}"
        )
    try:
        return Variant(name, kind, *_checked(kind, place.strip(), folder))
    except (ValueError, TargetRefused) as error:
        raise ValueError(f"{name}: {error}") from None


def _checked(kind: str, place: str, folder: Path) -> tuple[str, ...]:
    """Return the place of a variant, and the commit of a revision."""
    match kind:
        case "git":
            return _revision(place, folder)
        case "dockerfile":
            absolute = (folder / Path(place).expanduser()).resolve()
            if not (absolute / "Dockerfile").is_file():
                raise ValueError(f"{absolute} has no Dockerfile")
            return (str(absolute),)
        case "url":
            origin, target = split(place)
            if origin.scheme not in ("http", "https"):
                raise ValueError(f"'{place}' is no http or https address")
            if target != "/":
                raise ValueError(f"'{place}' has a path; give the path of all variants by --path")
            return (place.rstrip("/"),)
        case "command":
            words_of(place)
    return (place,)


def _revision(place: str, folder: Path) -> tuple[str, str]:
    path, at_sign, revision = place.rpartition("@")
    if not (at_sign and path and revision):
        raise ValueError(f"'{place}' is not REPOSITORY@REVISION, like .@v1.2")
    repository = (folder / Path(path).expanduser()).resolve()
    found = _known if COMMIT.fullmatch(revision) else _commit
    if not (commit := found(repository, revision)):
        raise ValueError(_no_revision(repository, revision))
    return str(repository), commit


def _commit(repository: Path, revision: str) -> str:
    """Return the commit that a revision names; empty where there is none."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    try:
        return _git(repository, *words)
    except ValueError:
        # It raises where this is no repository.
        _git(repository, "rev-parse", "--git-dir")
        return ""


@lru_cache
def _known(repository: Path, commit: str) -> str:
    """Return a whole commit: parameters that were checked are read again and again."""
    return _commit(repository, commit)


def _no_revision(repository: Path, revision: str) -> str:
    """Return that a revision is missing, and how to get it."""
    text = f"{repository} has no revision '{revision}'"
    remote = f"origin/{revision}"
    if _commit(repository, remote):
        return f"{text}, but {remote}: name that one"
    if _git(repository, "rev-parse", "--is-shallow-repository") == "true":
        return f"{text}, and its history was cut off: run 'git fetch --unshallow --tags' in it"
    known = _git(repository, "for-each-ref", "--format=%(refname:short)").splitlines()
    hint = did_you_mean(revision, known)
    return f"{text}{hint}: if it is elsewhere, run 'git fetch --tags origin {revision}' in it"


def words_of(command: str) -> list[str]:
    """Return the words of a command, split as by a shell; the command runs without one.

    Raises
    ------
    ValueError
        A quote is open, there is no word, or a placeholder is unknown.
    """
    words = shlex.split(command)
    if not words:
        raise ValueError("the command is empty")
    unknown = [name for name in PLACEHOLDER.findall(command) if name not in KNOWN]
    if unknown:
        raise ValueError(
            f"'{{{unknown[0]}}}' in '{command}' has no value; placeholders: "
            + ", ".join(f"{{{name}}}" for name in KNOWN)
        )
    return words


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


def merge_base(repository: Path, old: str, new: str) -> str:
    """Return the last common ancestor of two commits; empty where there is none."""
    try:
        return _git(repository, "merge-base", old, new)
    except ValueError:
        return ""


def extract(repository: Path, commit: str, folder: Path) -> None:
    """Write the files of a commit into a folder; raises ValueError with git's message."""
    archive = folder.with_name(f"{folder.name}.tar")
    words = ("archive", "--format=tar", f"--output={archive}", commit)
    _git(repository, *words, timeout_s=EXTRACT_TIMEOUT_S)
    try:
        subprocess.run(
            ["tar", "-xf", archive, "-C", folder],
            check=True, capture_output=True, text=True, timeout=EXTRACT_TIMEOUT_S,
        )  # fmt: skip
    except subprocess.CalledProcessError as error:
        raise ValueError(f"{repository}: {error.stderr.strip()[-500:]}") from None
    except subprocess.TimeoutExpired:
        raise ValueError(f"to unpack {commit:.8} took longer than {EXTRACT_TIMEOUT_S} s") from None
    archive.unlink()


def _git(repository: Path, *words: str, timeout_s: float = TIMEOUT_S) -> str:
    """Return what git prints; raises ValueError with its message."""
    # Without this option a status would refresh the index of the user's repository.
    command = ["git", "--no-optional-locks", "-C", str(repository), *words]
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=timeout_s
        )
    except FileNotFoundError:
        raise ValueError("git is not installed") from None
    except subprocess.TimeoutExpired:
        raise ValueError(f"git {words[0]} took longer than {timeout_s:g} s") from None
    if process.returncode:
        message = (process.stderr.strip() or "no such thing").splitlines()[-1]
        raise ValueError(f"{repository}: {message}")
    return process.stdout.strip()
