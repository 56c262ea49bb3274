"""Reads and checks variants, which are written ``NAME=KIND:WHAT``, and makes paths absolute."""

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


def variant_of(text: str, folder: Path) -> Variant:
    """Read one variant; relative places begin at ``folder``.

    Raises
    ------
    ValueError
        The variant is wrong; the message says why and how it is written.
    """
    name, equals, rest = text.partition("=")
    kind, colon, place = rest.partition(":")
    if not (equals and colon and place.strip()):
        raise ValueError(f"'{text}' is not NAME=KIND:WHAT, like new=git:.@HEAD")
    if not NAME.fullmatch(name) or name in TAKEN:
        raise ValueError(
            f"'{name}' cannot name a variant: use up to 31 letters, digits, '.', '_' or '-', but "
            f"not {' or '.join(TAKEN)}"
        )
    if kind not in KINDS:
        kinds = ", ".join(f"{known}:{form}" for known, form in KINDS.items())
        raise ValueError(f"{name}: no kind '{kind}'{did_you_mean(kind, KINDS)}; kinds: {kinds}")
    try:
        return _checked(Variant(name, kind, place.strip()), folder)
    except (ValueError, TargetRefused) as error:
        raise ValueError(f"{name}: {error}") from None


def _checked(variant: Variant, folder: Path) -> Variant:
    match variant.kind:
        case "git":
            return _revision(variant, folder)
        case "dockerfile":
            place = (folder / Path(variant.place).expanduser()).resolve()
            if not (place / "Dockerfile").is_file():
                raise ValueError(f"{place} has no Dockerfile")
            return Variant(variant.name, variant.kind, str(place))
        case "url":
            origin, target = split(variant.place)
            if origin.scheme not in ("http", "https"):
                raise ValueError(f"'{variant.place}': load goes to http and https addresses")
            if target != "/":
                raise ValueError(f"'{variant.place}' has a path; give it as --path, for all alike")
            return Variant(variant.name, variant.kind, variant.place.rstrip("/"))
        case "command":
            words_of(variant.place)
    return variant


def _revision(variant: Variant, folder: Path) -> Variant:
    place, at_sign, revision = variant.place.rpartition("@")
    if not (at_sign and place and revision):
        raise ValueError(f"'{variant.place}' is not REPOSITORY@REVISION, like .@v1.2")
    repository = (folder / Path(place).expanduser()).resolve()
    commit = commit_of(repository, revision)
    return Variant(variant.name, variant.kind, str(repository), commit)


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


def all_variants(texts: Iterable[str], folder: Path) -> tuple[Variant, ...]:
    """Read all variants.

    Raises
    ------
    ValueError
        A variant is wrong; the message has every problem of every variant.
    """
    variants, problems = [], []
    for text in texts:
        try:
            variants.append(variant_of(text, folder))
        except ValueError as error:
            problems.append(str(error))
    names = [variant.name for variant in variants]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        problems.append(f"{', '.join(twice)} names two variants; give each a name of its own")
    if problems:
        raise ValueError("; ".join(problems))
    return tuple(variants)
