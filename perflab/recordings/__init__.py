"""Recordings: the schema, the store and the readers of runs."""

from perflab.recordings.listing import list_runs, open_run
from perflab.recordings.published import claims, published, studies
from perflab.recordings.reader import Run
from perflab.recordings.resume import Remainder, check_same, remainder, remaining_blocks
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
    "SCHEMA_VERSION",
    "Contrast",
    "ContrastPair",
    "Remainder",
    "Run",
    "RunRecord",
    "RunWriter",
    "SessionRecord",
    "TreatmentRecord",
    "check_same",
    "claims",
    "list_runs",
    "new_run_id",
    "open_run",
    "published",
    "remainder",
    "remaining_blocks",
    "studies",
    "trial_id",
]
