"""The claim ledger: every published row with what became of it.

Rows and answers are data (:mod:`~perflab.reports.ledger.rows`); verdicts are those of the chosen
runs (:mod:`perflab.reports.chosen_runs`). Nothing is judged here: a verdict is looked up, or there
is none.
"""

from __future__ import annotations

from perflab.reports.ledger.entries import Entry, ledger
from perflab.reports.ledger.shown import count_table, headline, ledger_table, narrowed

__all__ = ["Entry", "count_table", "headline", "ledger", "ledger_table", "narrowed"]
