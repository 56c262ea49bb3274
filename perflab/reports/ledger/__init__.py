"""The claim ledger: every published row with what became of it.

Rows and answers are data (:mod:`~perflab.recordings.published_rows`). The ledger judges nothing: it
looks up the verdicts of the chosen runs (:mod:`perflab.reports.runs`).
"""

from __future__ import annotations

from perflab.reports.ledger.entries import LEDGER_FILE, ledger, reference_table
from perflab.reports.ledger.entry import Entry
from perflab.reports.ledger.shown import narrowed, shown_counts, shown_ledger, unmeasured
from perflab.reports.ledger.study_check import check_table, shown_checks

__all__ = [
    "LEDGER_FILE", "Entry", "check_table", "ledger", "narrowed", "reference_table",
    "shown_checks", "shown_counts", "shown_ledger", "unmeasured",
]  # fmt: skip
