"""What was published: every row with what answers it, and what the numbers say by themselves.

Nothing here knows of runs; :mod:`perflab.ledger` puts measured beside published.
"""

from __future__ import annotations

from perflab.published.answered_rows import Answer, Answered, Row, estimands, parse, reasons, rows
from perflab.published.study_check import check_table, checks

__all__ = [
    "Answer", "Answered", "Row", "check_table", "checks", "estimands", "parse", "reasons", "rows",
]  # fmt: skip
