"""The claim ledger: every published row with what became of it.

Rows and answers are data (:mod:`~perflab.reports.ledger.rows`). The ledger judges nothing: it looks
up the verdicts of the chosen runs (:mod:`perflab.reports.runs`).
"""

from __future__ import annotations

from perflab.reports.ledger.entries import Entry, ledger
from perflab.reports.ledger.shown import count_table, headline, ledger_table, narrowed

__all__ = ["Entry", "count_table", "headline", "ledger", "ledger_table", "narrowed"]
