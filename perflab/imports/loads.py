"""Which files are of one load, and which loads of one treatment."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perflab.errors import ImportRefused, ParameterError, RecordingError
from perflab.imports.formats import Format
from perflab.imports.locust import group_of
from perflab.imports.reading import refused
from perflab.recordings.opening import open_plain
from perflab.recordings.schema import MOST_BLOCKS, MOST_TREATMENTS

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.,=+:-]{0,99}", re.ASCII)

EXPERIMENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", re.ASCII)


@dataclass(frozen=True)
class SourceFile:
    """A file as it was imported."""

    path: Path
    size_bytes: int
    sha256: str


@dataclass(frozen=True)
class Load:
    """The files of one load, which become one trial."""

    files: tuple[SourceFile, ...]

    @property
    def paths(self) -> tuple[Path, ...]:
        """Return where they lie."""
        return tuple(each.path for each in self.files)


def check_names(groups: Mapping[str, Sequence[Path]], experiment: str, paired: bool) -> None:
    """Refuse treatments that cannot be named so, or have no or too many files.

    Raises
    ------
    ParameterError
        Lists every problem.
    """
    problems = [
        f"treatment '{name:.100}': a name has letters, digits and _ . , = + : -, at most 100"
        for name in groups
        if not NAME.fullmatch(name)
    ]
    if not EXPERIMENT_NAME.fullmatch(experiment):
        problems.append(f"experiment '{experiment:.100}': a name has letters, digits and _ . -")
    problems += [f"treatment '{name}' has no file" for name, own in groups.items() if not own]
    if not groups:
        problems.append("no file was named; write perflab import FILE...")
    if len(groups) > MOST_TREATMENTS:
        problems.append(f"there are {len(groups):,} treatments, at most {MOST_TREATMENTS:,}")
    if any(len(own) > MOST_BLOCKS for own in groups.values()):
        problems.append(f"a treatment has at most {MOST_BLOCKS:,} files")
    if paired and len(groups) < 2:
        problems.append("--paired pairs files of two treatments; here is one")
    if problems:
        raise ParameterError("perflab import", problems)


def loads_of(
    groups: Mapping[str, Sequence[Path]], form: Format, paired: bool
) -> dict[str, list[Load]]:
    """Return the loads of every treatment, in the order of the files.

    Raises
    ------
    ImportRefused
        A file is given twice, or one cannot be read.
    ParameterError
        Treatments that are to be paired have unlike numbers of loads.
    """
    seen: dict[str, Path] = {}
    found = {}
    for name, paths in groups.items():
        found[name] = [
            Load(tuple(_source(path, seen) for path in files)) for files in _together(paths, form)
        ]
    counts = {name: len(own) for name, own in found.items()}
    if paired and len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        said = f"--paired needs as many files of every treatment; here are {listed}"
        raise ParameterError("perflab import", [said])
    return found


def _together(paths: Sequence[Path], form: Format) -> list[list[Path]]:
    """Return files by load: Locust's by what their names begin with, of others each alone."""
    if form.tool != "locust":
        return [[path] for path in paths]
    groups: dict[str, dict[str, Path]] = {}
    for path in paths:
        prefix, suffix = group_of(path)
        if suffix in groups.setdefault(prefix, {}):
            raise refused(path, 0, "it is given twice; every load counts once")
        groups[prefix][suffix] = path
    return [[*own.values()] for own in groups.values()]


def _source(path: Path, seen: dict[str, Path]) -> SourceFile:
    try:
        with open_plain(path) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
    except (OSError, RecordingError) as error:
        raise ImportRefused(f"{path}: {error}") from None
    # Two loads may well have failed alike in nothing; Locust's list of failures is then the same.
    if digest in seen and not path.name.endswith("_failures.csv"):
        raise ImportRefused(f"{path}: it is the same as {seen[digest]}; every load counts once")
    seen[digest] = path
    return SourceFile(path, size, digest)
