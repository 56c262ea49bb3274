"""A fingerprint of the sources that a trial's numbers depend on, and of each place of them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from perflab.paths import FOREIGN, foreign_dirs, foreign_systems, project_root

# What measures, and what is measured; the locks say what both were installed from. Notebooks and
# figures may change between two halves of a run.
PLACES = ("perflab", "services")
LOCKS = "*.lock"
NO_SOURCES = {"__pycache__", ".git", ".venv", ".ipynb_checkpoints"}
LENGTH = 16
# What follows the name of the package, to the end of the line or of a list in parentheses.
IMPORTS = re.compile(r"\bperflab\.systems\b((?:[^\n(]*\([^)]*\))|[^\n]*)")


def sources(systems: Iterable[str] | None = None) -> dict[str, str]:
    """Return a SHA-256 of each place: the package, the services, each lock, foreign systems.

    Parameters
    ----------
    systems : iterable of str, optional
        Of the systems from elsewhere only these and those that they import: what a run does not
        use cannot change what it measures. All of them unless given.
    """
    root = project_root()
    places = {place: root / place for place in PLACES}
    places |= {path.name: path for path in sorted(root.glob(LOCKS))}
    # Where they lie is no matter of what they do.
    if systems is None:
        places |= {f"{FOREIGN} {number}": path for number, path in enumerate(foreign_dirs(), 1)}
    else:
        places |= {f"system {name}": folder for name, folder in used_by(systems).items()}
    return {name: _of(path) for name, path in places.items()}


def used_by(systems: Iterable[str]) -> dict[str, Path]:
    """Return the folders of foreign systems among ``systems``, and of those that they import."""
    known = foreign_systems()
    waiting, used = [name for name in systems if name in known], dict[str, Path]()
    while waiting:
        name = waiting.pop()
        if name not in used:
            used[name] = known[name]
            waiting += _imported_by(known[name], known)
    return dict(sorted(used.items()))


def _imported_by(folder: Path, known: Iterable[str]) -> list[str]:
    modules = [path for path in _files(folder) if path.suffix == ".py"]
    text = "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in modules)
    words = {word for line in IMPORTS.findall(text) for word in re.findall(r"\w+", line)}
    return [name for name in known if name in words]


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
