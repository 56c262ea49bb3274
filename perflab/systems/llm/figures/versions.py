"""How versions of the proxy appear, and which rungs belong together."""

from __future__ import annotations

import pandas as pd

from perflab.figures.looks import Look, appearance
from perflab.recordings import Run
from perflab.systems.llm.rungs import VERSIONS

NAMES = {"old": "old: chunks are made anew", "new": "new: passed through", "raw": "raw bytes"}
LOOKS: dict[str, Look] = {
    name: Look(*appearance(place), label=NAMES[name]) for place, name in enumerate(VERSIONS)
}


def rungs_of(run: Run) -> pd.DataFrame:
    """Return treatment, its rung's ``family`` (the rung without its version), and ``version``."""
    rows = [
        {
            "treatment": item.name,
            "family": item.levels["rung"].rpartition("_")[0],
            "version": item.levels["version"],
        }
        for item in run.record.treatments
    ]
    return pd.DataFrame(rows, columns=["treatment", "family", "version"])
