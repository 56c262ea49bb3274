"""The names that stand for the codes in a worker's rows: JSON files beside the rows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

# Of the requests of a mix or a script; of the phases of answers; of the kinds of messages.
TEMPLATE_NAMES, PHASE_NAMES, KIND_NAMES = "templates.names", "phases.names", "messages.names"


def write_names(folder: Path, file: str, names: Iterable[str]) -> None:
    """Write names by their codes into a worker's folder."""
    (folder / file).write_text(json.dumps([*names]))


def names_in(folder: Path, file: str) -> tuple[str, ...]:
    """Return the names that a worker wrote, by their codes; none where it wrote none."""
    path = folder / file
    return tuple(json.loads(path.read_text())) if path.exists() else ()
