"""A run's findings and summary as text: numbers with interval and n, or a dash."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from perflab.analysis.evaluation import evaluate, findings_table, sentence, summary_table
from perflab.recordings import Run
from perflab.reports.numbers import MISSING, count, estimate, missing, number, p_value, ratio

COLUMNS = ["claim", "response", "published", "measured ratio [95%]", "n", "p", "verdict", "source"]
COUNTS = ("valid", "invalid", "failed")
DIRECTIONS = {"greater": "> 1", "smaller": "< 1", "none": "no effect"}


def readable_findings(run: Run) -> pd.DataFrame:
    """Return one row of text per claim of ``run``, with the columns in ``COLUMNS``.

    ``p`` is the one corrected over the run's claims; ``n`` counts blocks.
    """
    rows = findings_table(evaluate(run)).to_dict("records")
    return pd.DataFrame([_finding(row) for row in rows], columns=COLUMNS)


def _finding(row: Mapping[Any, Any]) -> dict[str, str]:
    measured = estimate(row["measured ratio"], row["95% low"], row["95% high"])
    return {
        "claim": str(row["claim"]),
        "response": str(row["response"]),
        "published": _published(row),
        "measured ratio [95%]": measured,
        "n": count(row["n"]),
        "p": p_value(row["p (adjusted)"]),
        "verdict": str(row["verdict"]),
        "source": str(row["source"]) or MISSING,
    }


def _published(row: Mapping[Any, Any]) -> str:
    if not missing(row["published"]):
        return ratio(row["published"])
    return DIRECTIONS.get(str(row["published direction"]), MISSING)


def readable_summary(run: Run) -> pd.DataFrame:
    """Return one row of text per treatment: trials by state and medians over the valid ones."""
    table = summary_table(run).reset_index()
    readable = {
        name: [_cell(name, value) for value in table[name]] for name in table.columns
    }
    return pd.DataFrame(readable)


def _cell(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    return count(value) if name in COUNTS else number(value)


def sentences(run: Run) -> list[str]:
    """Return the run's verdicts, one sentence per claim, written from the data."""
    return [sentence(finding) for finding in evaluate(run)]
