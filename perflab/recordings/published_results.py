"""The published results: those in ``data/published/``, and those that systems bring along."""

from __future__ import annotations

from csv import DictReader
from functools import cache
from pathlib import Path

import pandas as pd

from perflab.errors import RecordingError
from perflab.parameters import did_you_mean
from perflab.paths import parts_of_systems, project_root

COLUMNS = (
    "study", "place", "scenario", "measure", "unit", "value", "qualifier", "kind", "answer", "note",
)  # fmt: skip
CLAIM_COLUMNS = ("study", "place", "claim_id", "claim", "kind", "answer")
CLAIMS = "claims"
# Tables of all studies beside the files of single ones: what `perflab.published` reads.
SHARED = (CLAIMS, "reasons", "estimands", "checks")


def studies() -> list[str]:
    """Return the names of the studies whose results are there."""
    return sorted(_files())


def published(study: str) -> pd.DataFrame:
    """Return a study's published values, one number per row.

    Columns: study, place, scenario, measure, unit, value (float), qualifier, kind, answer, note;
    see the README beside the files.

    Raises
    ------
    RecordingError
        There is no study of that name.
    """
    return _read(*_version(study)).copy()


def _version(study: str) -> tuple[Path, int]:
    """Return a study's file and when it was written: it is read once."""
    path = _path(study)
    return path, path.stat().st_mtime_ns


def _path(study: str) -> Path:
    own = _own_folder() / f"{study}.csv"
    if study not in SHARED and own.exists():
        return own
    known = _files()
    if study not in known:
        raise RecordingError(
            f"no published study '{study}'{did_you_mean(study, known)}; "
            f"there are: {', '.join(sorted(known)) or 'none in ' + str(_folders()[0])}"
        )
    return known[study]


@cache
def _read(path: Path, _: int) -> pd.DataFrame:
    table = pd.read_csv(path, keep_default_na=False, dtype="str")
    try:
        table["value"] = table["value"].astype(float)
    except (KeyError, ValueError) as error:
        raise RecordingError(f"{path}: column 'value' must hold numbers ({error})") from None
    return table[list(COLUMNS)]


def published_value(study: str, place: str, scenario: str, measure: str) -> float:
    """Return one published number, in the unit of its row.

    Raises
    ------
    RecordingError
        There is no such study, or no such row in it; the message names the nearest.
    """
    rows = _rows(*_version(study))
    wanted = (place, scenario, measure)
    if wanted not in rows:
        nearest = did_you_mean(_named(wanted), map(_named, rows))
        raise RecordingError(f"{study}.csv has no row '{_named(wanted)}'{nearest}")
    return rows[wanted]


@cache
def _rows(path: Path, written: int) -> dict[tuple[str, str, str], float]:
    """Return a study's numbers by place, scenario and measure."""
    table = _read(path, written)
    keys = zip(table["place"], table["scenario"], table["measure"], strict=True)
    return dict(zip(keys, table["value"], strict=True))


def _named(row: tuple[str, str, str]) -> str:
    return " / ".join(row)


def targets(study: str) -> dict[str, float]:
    """Return a study's targets by measure, in the unit of the measure; empty where it has none.

    Raises
    ------
    RecordingError
        There is no study of that name.
    """
    table = published(study)
    own = table[table["place"] == "targets"]
    return dict(zip(own["measure"], own["value"].astype(float), strict=True))


def claims() -> pd.DataFrame:
    """Return the published claims: study, place, claim_id, claim (in our words), kind, answer."""
    return pd.DataFrame(shared_rows(CLAIMS), columns=list(CLAIM_COLUMNS))


def shared_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a table about all studies: the checkout's, then those of systems.

    Raises
    ------
    RecordingError
        The checkout has no such table.
    """
    first, *others = [folder / f"{name}.csv" for folder in _folders()]
    if not first.exists():
        raise RecordingError(f"{first}: is missing; it is part of the checkout")
    found: list[dict[str, str]] = []
    for path in [first, *(path for path in others if path.exists())]:
        with path.open(encoding="utf-8", newline="") as file:
            found += [{key: value or "" for key, value in row.items()} for row in DictReader(file)]
    return found


def _files() -> dict[str, Path]:
    """Return the file of every study; of two with one name the checkout's."""
    paths = [path for folder in reversed(_folders()) for path in folder.glob("*.csv")]
    return {path.stem: path for path in paths if path.stem not in SHARED}


def _folders() -> list[Path]:
    return [_own_folder(), *parts_of_systems("published")]


def _own_folder() -> Path:
    return project_root() / "data" / "published"
