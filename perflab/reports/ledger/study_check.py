"""The study check: what published numbers say by themselves, without any load.

``checks.csv`` beside the published results holds it, a line per statement about printed numbers.
A printed number stands for all values that would be printed so: two numbers contradict each other
only where no such values agree.
"""

from __future__ import annotations

from typing import Literal

import pandas as pd

from perflab.analysis.results import AgainstStudy
from perflab.errors import ParameterError
from perflab.parameters import Parameters, unknown
from perflab.recordings import studies
from perflab.recordings.display import Shown
from perflab.recordings.published_results import shared_rows
from perflab.reports.verdicts import LOOKS

INCONSISTENT, CANNOT_TELL, CONSISTENT = "inconsistent", "cannot be told", "consistent"
FINDINGS = (INCONSISTENT, CANNOT_TELL, CONSISTENT)
# The colours of verdicts and of findings, as the ledger shows both.
MARKS = {
    **{outcome.value: color for outcome, color in LOOKS.items()},
    INCONSISTENT: LOOKS[AgainstStudy.OTHER_WAY],
    CONSISTENT: LOOKS[AgainstStudy.AS_PUBLISHED],
}


class Check(Parameters):
    """A statement about published rows, whether they agree with it, and the numbers compared."""

    study: str
    check: str
    finding: Literal["inconsistent", "cannot be told", "consistent"]
    statement: str
    numbers: str


def checks(study: str = "") -> list[Check]:
    """Return the checks of a study, or of all.

    ParameterError where there is no such study, RecordingError where a line is not as wanted.
    """
    if study and (problems := unknown("study", [study], studies())):
        raise ParameterError("study", problems)
    return [check for check in shared_rows("checks", Check) if study in ("", check.study)]


def check_table(study: str = "", finding: str = "") -> pd.DataFrame:
    """Return the checks as a table, inconsistent ones first.

    ParameterError where there is no such finding.
    """
    if finding and (problems := unknown("finding", [finding], FINDINGS)):
        raise ParameterError("finding", problems)
    chosen = [check for check in checks(study) if finding in ("", check.finding)]
    chosen.sort(key=lambda check: FINDINGS.index(check.finding))
    return pd.DataFrame(map(dict, chosen), columns=list(Check.model_fields))


def shown_checks(table: pd.DataFrame) -> Shown:
    """Return a :func:`check_table` as a notebook shows it."""
    statements = table["statement"] + "\n(" + table["study"] + ")"
    text = table[["finding"]].assign(statement=statements, numbers=table["numbers"])
    counts = table["finding"].value_counts()
    parts = [f"{counts.get(finding, 0)} {finding}" for finding in FINDINGS]
    return Shown(table, text, notes=[f"{len(table)} checks: {', '.join(parts)}."], marks=MARKS)
