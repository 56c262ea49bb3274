"""Recognises runs of imported results, which the lab did not measure and cannot judge."""

from __future__ import annotations

from perflab.recordings.schema import RunRecord

# It stands in the place of the backend.
BACKEND = "imported"


def is_imported(record: RunRecord) -> bool:
    """Return whether a run holds results of another tool."""
    return record.backend == BACKEND
