"""Runs of imported results: what other tools tell, which the lab did not measure or judge."""

from __future__ import annotations

from perflab.recordings.schema import RunRecord

# In place of the backend that services would have run on.
BACKEND = "imported"


def is_imported(record: RunRecord) -> bool:
    """Say whether a run holds results of another tool."""
    return record.backend == BACKEND
