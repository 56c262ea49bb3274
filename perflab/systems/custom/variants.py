"""Reads and checks variants, which are written ``NAME=KIND:WHAT``, and finds their revisions.

Places become absolute paths, revisions commits, and working trees the digest of their files.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from perflab.errors import TargetRefused
from perflab.load.clients.targets import split
from perflab.parameters import did_you_mean
from perflab.systems.custom.revisions import commit_of
from perflab.systems.custom.submodules_and_lfs import check_whole
from perflab.systems.custom.trees import DIGITS, is_kept, keep

KINDS = {
    "git": "REPOSITORY@REVISION",
    "tree": "FOLDER",
    "command": "WORDS",
    "url": "http://HOST:PORT",
    "image": "NAME:TAG",
    "dockerfile": "FOLDER",
}
# The kinds that are files, which a command or a Dockerfile starts.
TREES = ("git", "tree")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,30}")
# The CPU of the load's own processes is recorded under these names.
TAKEN = ("client", "lab")
PLACEHOLDER = re.compile(r"\{([a-z_]+|[a-z][a-z0-9_]*\.[a-z_]+)\}")
KNOWN = ("port", "host")
# A revision may hold an @ itself, before a brace: HEAD@{1}.
REVISION = re.compile(r"(.+)@(?!\{)(.+)")
# What a shell takes as it is, and what it would act on elsewhere.
QUOTED = re.compile(r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"", re.S)
OF_A_SHELL = re.compile(r"(?:^|(?<=\s))(?:&&|\|\|?|\d?(?:>>?|<))(?=\s|$)|;(?=\s|$)")
DIGEST = re.compile(f"@[0-9a-f]{{{DIGITS}}}$")


@dataclass(frozen=True)
class Variant:
    """One variant: ``place`` is a repository, a folder, an address, an image or a command.

    ``commit`` is that of a revision, or the digest of a working tree.
    """

    name: str
    kind: str
    place: str
    commit: str = ""

    @property
    def text(self) -> str:
        """Return the variant as it is written, with an absolute path and a commit."""
        return f"{self.name}={self.kind}:{self.place}" + (f"@{self.commit}" if self.commit else "")

    @property
    def is_tree(self) -> bool:
        """Whether the variant is files, which a command or a Dockerfile starts."""
        return self.kind in TREES

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
        case "tree":
            return _working_tree(place, folder)
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
    return (place,)


def _revision(place: str, folder: Path) -> tuple[str, str]:
    if not (found := REVISION.fullmatch(place)):
        raise ValueError(f"'{place}' is not REPOSITORY@REVISION, like .@v1.2")
    path, revision = found.groups()
    repository = (folder / Path(path).expanduser()).resolve()
    commit = commit_of(repository, revision)
    check_whole(repository, commit)
    return str(repository), commit


def _working_tree(place: str, folder: Path) -> tuple[str, str]:
    """Return the folder of a working tree, and the digest of its files, which are kept."""
    path, _, digest = place.rpartition("@") if DIGEST.search(place) else (place, "", "")
    tree = (folder / Path(path).expanduser()).resolve()
    if not tree.is_dir():
        raise ValueError(f"{tree} is no folder")
    if digest and not is_kept(digest, tree):
        raise ValueError(f"the files of {tree} have changed since this run began; begin a new one")
    return str(tree), digest or keep(tree)


def words_of(command: str, told: Iterable[str] = ()) -> list[str]:
    """Return the words of a command, split as by a shell; the command runs without one.

    ``told`` are the placeholders of what the service needs. ValueError where a quote is open, there
    is no word, a shell would have to read it, or a placeholder has no value.
    """
    words = shlex.split(command)
    if not words:
        raise ValueError("the command is empty")
    if operator := OF_A_SHELL.search(QUOTED.sub("_", command)):
        raise ValueError(
            f"no shell reads it, and '{operator[0]}' would be an argument: write sh -c '...'"
        )
    if problem := without_value(command, told):
        raise ValueError(problem)
    return words


def without_value(text: str, told: Iterable[str] = ()) -> str:
    """Return that a text has a placeholder that has no value, or an empty string."""
    known = [*KNOWN, *told]
    for name in PLACEHOLDER.findall(text):
        if name not in known:
            listed = ", ".join(f"{{{each}}}" for each in known)
            hint = did_you_mean(name, known)
            return f"'{{{name}}}' in '{text}' has no value{hint}; placeholders: {listed}"
    return ""
