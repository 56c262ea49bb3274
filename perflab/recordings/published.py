"""The published results, as carried over into ``data/published/``."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pandas as pd

from perflab.errors import RecordingError
from perflab.parameters import did_you_mean
from perflab.paths import project_root

COLUMNS = ("study", "place", "scenario", "measure", "unit", "value", "qualifier", "note")
CLAIMS = "claims"
_TEXT = {name: "str" for name in COLUMNS if name != "value"}


def studies() -> list[str]:
    """Return the names of the studies whose results are there."""
    return sorted(path.stem for path in _folder().glob("*.csv") if path.stem != CLAIMS)


def published(study: str) -> pd.DataFrame:
    """Return a study's published values, one number per row.

    Columns: study, place, scenario, measure, unit, value (float), qualifier, note; see the
    README beside the files.

    Raises
    ------
    RecordingError
        There is no study of that name.
    """
    known = studies()
    if study not in known:
        raise RecordingError(
            f"no published study '{study}'{did_you_mean(study, known)}; "
            f"there are: {', '.join(known) or 'none in ' + str(_folder())}"
        )
    return pd.read_csv(_folder() / f"{study}.csv", keep_default_na=False, dtype=_TEXT)


def published_value(study: str, place: str, scenario: str, measure: str) -> float:
    """Return one published number, in the unit of its row.

    Raises
    ------
    RecordingError
        The study has no such row; the message names the nearest.
    """
    rows = _rows(_folder() / f"{study}.csv")
    wanted = (place, scenario, measure)
    if wanted not in rows:
        nearest = did_you_mean(_named(wanted), map(_named, rows))
        raise RecordingError(f"{study}.csv has no row '{_named(wanted)}'{nearest}")
    return rows[wanted]


@cache
def _rows(path: Path) -> dict[tuple[str, str, str], float]:
    """Return a study's numbers by place, scenario and measure; its file is read once."""
    table = published(path.stem)
    keys = zip(table["place"], table["scenario"], table["measure"], strict=True)
    return dict(zip(keys, table["value"].astype(float), strict=True))


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
    """Return the published claims: study, place, claim_id and claim (in our words)."""
    path = _folder() / f"{CLAIMS}.csv"
    if not path.exists():
        raise RecordingError(f"{path}: is missing; it is part of the checkout")
    return pd.read_csv(path, keep_default_na=False, dtype="str")


def _folder() -> Path:
    return project_root() / "data" / "published"
