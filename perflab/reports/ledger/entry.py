"""An entry of the ledger: a published row and what became of it."""

from __future__ import annotations

from dataclasses import dataclass

from perflab.analysis.results import AgainstStudy
from perflab.recordings.published_rows import Row

# What became of a row that no result of a contrast answers.
UNMEASURED = AgainstStudy.NOT_MEASURED.value
SHOWN = "shown, not judged"
TAKEN_OVER = "taken over"
CHECKED = "checked by its own numbers"
SAME = "same as another row"
NO_ANSWER = "no answer"
NOT_TESTABLE = AgainstStudy.NOT_TESTABLE.value


@dataclass(frozen=True)
class Entry:
    """A published row and what became of it.

    ``outcome`` is the result where a contrast judges the row; of several, that of all of them.
    ``why`` is the reason, and
    ``command`` what measures or shows it. ``measured`` and ``n`` have an item for each contrast of
    the row. ``shipped`` says that the run is one of the reference. ``doubt`` says why the answers
    of the run are doubtful (empty: nothing is known).
    """

    row: Row
    outcome: str
    why: str = ""
    command: str = ""
    measured: tuple[str, ...] = ()
    n: tuple[str, ...] = ()
    run_id: str = ""
    judged: bool = False
    shipped: bool = False
    doubt: str = ""

    @property
    def has_no_run(self) -> bool:
        """Whether no run has measured the row; ``command`` does."""
        return self.outcome == UNMEASURED and not self.judged
