"""The claim ledger: every published row with what became of it.

Rows and answers are data (:mod:`perflab.published`); verdicts are those of the chosen runs
(:mod:`perflab.chosen_runs`). Nothing is judged here: a verdict is looked up, or there is none.
"""

from __future__ import annotations

from perflab.ledger.entries import Entry, ledger
from perflab.ledger.shown import count_table, headline, ledger_table, narrowed

__all__ = ["Entry", "count_table", "headline", "ledger", "ledger_table", "narrowed"]
