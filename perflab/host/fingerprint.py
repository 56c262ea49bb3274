"""A fingerprint of the sources that a trial's numbers depend on, and of each place of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from perflab.paths import FOREIGN, foreign_dirs, project_root

# What measures, and what is measured; the locks say what both were installed from. Notebooks and
# figures may change between two halves of a run.
PLACES = ("perflab", "services")
LOCKS = "*.lock"
NO_SOURCES = {"__pycache__", ".git", ".venv", ".ipynb_checkpoints"}
LENGTH = 16


def sources() -> dict[str, str]:
    """Return a SHA-256 of each place: the package, the services, each lock, foreign systems."""
    root = project_root()
    places = {place: root / place for place in PLACES}
    places |= {path.name: path for path in sorted(root.glob(LOCKS))}
    # Where they lie is no matter of what they do.
    places |= {f"{FOREIGN} {number}": path for number, path in enumerate(foreign_dirs(), 1)}
    return {name: _of(path) for name, path in places.items()}


def of_all(places: Mapping[str, str]) -> str:
    """Return one fingerprint of the fingerprints of all places."""
    text = json.dumps(places, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


def _of(place: Path) -> str:
    digest = hashlib.sha256()
    for path in _files(place):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(place).as_posix()}\0{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:LENGTH]


def _files(place: Path) -> Iterator[Path]:
    """Yield the files of a folder in one order, caches left out; of a file itself."""
    if place.is_file():
        yield place
        return
    for path in sorted(place.rglob("*")):
        if path.is_file() and not NO_SOURCES.intersection(path.relative_to(place).parts):
            yield path
