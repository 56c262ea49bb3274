"""Which files are of which treatment; each is one load."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perflab.errors import ImportRefused, ParameterError, RecordingError
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


def loads_of(groups: Mapping[str, Sequence[Path]], paired: bool) -> dict[str, list[SourceFile]]:
    """Return the files of every treatment, in their order.

    Raises
    ------
    ImportRefused
        A file is given twice, or one cannot be read.
    ParameterError
        Treatments that are to be paired have unlike numbers of loads.
    """
    seen: dict[str, Path] = {}
    found = {name: [_source(path, seen) for path in paths] for name, paths in groups.items()}
    counts = {name: len(own) for name, own in found.items()}
    if paired and len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        said = f"--paired needs as many files of every treatment; here are {listed}"
        raise ParameterError("perflab import", [said])
    return found


def _source(path: Path, seen: dict[str, Path]) -> SourceFile:
    try:
        with open_plain(path) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
    except (OSError, RecordingError) as error:
        raise ImportRefused(f"{path}: {error}") from None
    if digest in seen:
        raise ImportRefused(f"{path}: it is the same as {seen[digest]}; every load counts once")
    seen[digest] = path
    return SourceFile(path, size, digest)
