"""Which trials the generator could not vouch for, and why."""

from __future__ import annotations

import re
from collections import Counter

import pandas as pd

from perflab.recordings import Run

NUMBER = re.compile(r"(?<!\w)\d[\d.]*%?")


def validity_table(run: Run) -> pd.DataFrame:
    """Return one row per treatment, in the order of the record.

    Columns: treatment, label; valid, invalid, failed (trials that were not superseded);
    ``reason``, the one that most invalid or failed trials have, without its numbers.
    """
    trials = run.trials()
    trials = trials[~trials["superseded"]]
    rows = []
    for treatment in run.record.treatments:
        own = trials[trials["treatment"] == treatment.name]
        counts = {state: int((own["state"] == state).sum()) for state in ("valid", "invalid")}
        failed = int((own["state"] == "failed").sum())
        kinds = Counter(
            kind for given in own["reasons"] for kind in {_kind(each) for each in given}
        )
        rows.append(
            {
                "treatment": treatment.name,
                "label": treatment.label or treatment.name,
                **counts,
                "failed": failed,
                "reason": kinds.most_common(1)[0][0] if kinds else "",
            }
        )
    return pd.DataFrame(rows)


def _kind(reason: str) -> str:
    """Return a reason without its numbers, so that equal kinds can be counted."""
    return NUMBER.sub("...", reason.splitlines()[0])
