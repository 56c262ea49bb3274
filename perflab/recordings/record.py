"""Reading ``run.json``, which may come from somebody else."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError
from pydantic_core import from_json

from perflab.errors import RecordingError
from perflab.recordings.opening import read_plain
from perflab.recordings.schema import SCHEMA_VERSION, RunRecord

FILE = "run.json"
# The largest record of the lab's own, 1,000 blocks of 60 treatments, has 5 MB.
LARGEST_BYTES = 16 * 2**20
SHOWN_ERRORS = 3


def read_record(path: Path) -> RunRecord:
    """Read ``run.json`` of a run's folder.

    Raises
    ------
    RecordingError
        There is none, it is damaged or contradicts itself, or has another schema.
    """
    file = path / FILE
    try:
        words = from_json(read_plain(file, LARGEST_BYTES), allow_inf_nan=False)
        version = words["schema_version"]
    except (FileNotFoundError, NotADirectoryError):
        raise RecordingError(f"{path}: is not a run (it holds no {FILE})") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordingError(f"{file}: is damaged or unreadable: {error!r:.300}") from error
    if type(version) is int and version != SCHEMA_VERSION:
        raise RecordingError(
            f"{file}: has schema version {str(version)[:20]}, this perflab reads {SCHEMA_VERSION} "
            "alone; read it with the perflab that wrote it, or measure anew"
        )
    try:
        return RunRecord.model_validate(words)
    except ValidationError as error:
        raise RecordingError(f"{file}: is not a valid record: {_first_of(error)}") from error


def _first_of(error: ValidationError) -> str:
    """Say the first things that are wrong."""
    listed = error.errors(include_url=False, include_context=False, include_input=False)
    shown = [
        f"{'.'.join(map(str, each['loc'])) or 'the record'}: {each['msg']}"[:300]
        for each in listed[:SHOWN_ERRORS]
    ]
    more = f"; and {len(listed) - SHOWN_ERRORS} more" if len(listed) > SHOWN_ERRORS else ""
    return "; ".join(shown) + more
