"""Recordings: the schema, the store and the readers of runs."""

from perflab.recordings.contrasts import Bound, Contrast, ContrastPair, Scale
from perflab.recordings.listing import list_runs, newer_unfinished, not_finished, open_run
from perflab.recordings.many import ManyRuns, Rows, many_runs
from perflab.recordings.many_index import fingerprint
from perflab.recordings.published_results import (
    claims,
    published,
    published_value,
    studies,
    targets,
)
from perflab.recordings.reader import Run
from perflab.recordings.reasons import Reason, Remark, Side, fault
from perflab.recordings.responses import declared, named, response_of, typical
from perflab.recordings.resume import Remainder, remainder, remaining_blocks
from perflab.recordings.run_facts import RunFacts
from perflab.recordings.sameness import check_same, check_services
from perflab.recordings.schema import (
    SCHEMA_VERSION,
    Response,
    RunRecord,
    SessionRecord,
    Steady,
    TreatmentRecord,
)
from perflab.recordings.selection import FREE_PARAMETERS, Selected, complete_blocks, select
from perflab.recordings.store import RunWriter, new_run_id
from perflab.recordings.trial_ids import trial_id
from perflab.recordings.trial_rows import trials_kept
from perflab.recordings.until_decided import Look, PlannedLook, UntilDecided

__all__ = [
    "FREE_PARAMETERS",
    "SCHEMA_VERSION",
    "Bound",
    "Contrast",
    "ContrastPair",
    "Look",
    "ManyRuns",
    "PlannedLook",
    "Reason",
    "Remainder",
    "Remark",
    "Response",
    "Rows",
    "Run",
    "RunFacts",
    "RunRecord",
    "RunWriter",
    "Scale",
    "Selected",
    "SessionRecord",
    "Side",
    "Steady",
    "TreatmentRecord",
    "UntilDecided",
    "check_same",
    "check_services",
    "claims",
    "complete_blocks",
    "declared",
    "fault",
    "fingerprint",
    "list_runs",
    "many_runs",
    "named",
    "new_run_id",
    "newer_unfinished",
    "not_finished",
    "open_run",
    "published",
    "published_value",
    "remainder",
    "remaining_blocks",
    "response_of",
    "select",
    "studies",
    "targets",
    "trial_id",
    "trials_kept",
    "typical",
]
