"""Recordings: the schema, the store and the readers of runs."""

from perflab.recordings.published_results import (
    Contrast,
    ContrastPair,
    claims,
    published,
    published_value,
    stated,
    studies,
    targets,
)
from perflab.recordings.reference import is_reference, reference_run, reference_runs
from perflab.recordings.responses import named, response_of, typical
from perflab.recordings.run import Run
from perflab.recordings.runs import (
    FREE_PARAMETERS,
    REFERENCE,
    complete_blocks,
    list_runs,
    newest_runs,
    open_run,
    select,
    trials_of_runs,
)
from perflab.recordings.sameness import check_same, check_services
from perflab.recordings.schema import (
    Reason,
    Remark,
    Response,
    RunRecord,
    Side,
    TreatmentRecord,
    fault,
)
from perflab.recordings.store import RunWriter, is_whole, new_run_id, remaining_blocks
from perflab.recordings.tables import trial_id
from perflab.statistics.interim_analysis import UntilDecided

__all__ = [
    "FREE_PARAMETERS", "REFERENCE", "Contrast", "ContrastPair", "Reason", "Remark", "Response",
    "Run", "RunRecord", "RunWriter", "Side", "TreatmentRecord", "UntilDecided", "check_same",
    "check_services", "claims", "complete_blocks", "fault", "is_reference",
    "is_whole", "list_runs", "named", "new_run_id", "newest_runs", "open_run",
    "published", "published_value", "reference_run", "reference_runs", "remaining_blocks",
    "response_of", "select", "stated", "studies", "targets", "trial_id", "trials_of_runs",
    "typical",
]  # fmt: skip
