"""Recordings: the tables of a run, how they are kept, and how they are read."""

from perflab.recordings.listing import list_runs, open_run
from perflab.recordings.reader import Run
from perflab.recordings.resume import check_same, remaining_blocks
from perflab.recordings.schema import (
    SCHEMA_VERSION,
    Contrast,
    ContrastPair,
    RunRecord,
    SessionRecord,
    TreatmentRecord,
    trial_id,
)
from perflab.recordings.store import RunWriter, new_run_id

__all__ = [
    "SCHEMA_VERSION", "Contrast", "ContrastPair", "Run", "RunRecord", "RunWriter",
    "SessionRecord", "TreatmentRecord", "check_same", "list_runs", "new_run_id", "open_run",
    "remaining_blocks", "trial_id",
]  # fmt: skip
