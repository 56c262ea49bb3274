"""What changed between runs, as a notebook shows it."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from perflab.analysis.treatments.between_runs import compare_runs
from perflab.display import Shown
from perflab.recordings import Run
from perflab.reports.numbers import estimate, p_value

COLORS = {"worse": "#c0392b", "better": "#2e7d32"}
COLUMNS = ("treatment", "response", "B / A [95%]", "runs", "trials", "p, adjusted", "verdict")
NUMBERS = frozenset(COLUMNS[2:6])


def shown_comparison(a: Sequence[Run], b: Sequence[Run]) -> Shown:
    """Return ratios B / A with verdicts; or, below an empty table, why there are none."""
    found = compare_runs(a, b)
    rows = [
        (
            row["treatment"],
            row["response"],
            estimate(row["ratio"], row["low"], row["high"]),
            f"{row['runs_a']}, {row['runs_b']}",
            f"{row['trials_a']}, {row['trials_b']}",
            p_value(row["p_adjusted"]),
            row["verdict"],
        )
        for row in found.table.to_dict("records")
    ]
    text = pd.DataFrame(rows, columns=list(COLUMNS), dtype=object)
    notes = [
        f"{name}: {', '.join(run.run_id for run in side)}"
        for name, side in zip("AB", (a, b), strict=True)
    ]
    if found.obstacles:
        notes += ["They are not comparable:", *found.obstacles]
    return Shown(found.table, text, NUMBERS, notes=[*notes, *found.notes], marks=COLORS)
