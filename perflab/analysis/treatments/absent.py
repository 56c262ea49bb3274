"""Why blocks lack a number: trials that may not be used, and numbers that valid ones hold back."""

from __future__ import annotations

import re
from collections.abc import Collection

import pandas as pd

from perflab.analysis.trials.validity import told
from perflab.numerals import counted
from perflab.recordings import Remark, Response, Run

# For these a valid trial gives no number, or none that may be compared; they name the numbers.
HOLD_BACK = ("load.censored", "generator.client_time")
TOO_FEW = "too few requests or messages for it, or none"


def why_absent(run: Run, treatments: Collection[str], response: Response) -> str:
    """Return what is held against trials of these treatments; empty where all have the number."""
    trials = run.trials()
    own = trials[trials["treatment"].isin(treatments) & ~trials["superseded"].astype(bool)]
    valid = own[own["state"] == "valid"]
    unusable = own[own["state"] != "valid"]
    parts = []
    if len(unusable):
        of = f"{len(unusable)} of {counted(len(own), 'trial')}"
        parts.append(f"{of} may not be used: {told(unusable['reasons'])}")
    if response.name in valid:
        without = valid[valid[response.name].isna()]
        if len(without):
            of = f"{len(without)} of {counted(len(valid), 'valid trial')}"
            parts.append(f"no {response.title} from {of}: {_held_back(without, response)}")
    return "; ".join(parts)


def _held_back(trials: pd.DataFrame, response: Response) -> str:
    said = [[each for each in own if _concerns(each, response)] for own in trials["warnings"]]
    return told(said) or TOO_FEW


def _concerns(remark: Remark, response: Response) -> bool:
    # Of ``service_p99_ms`` the p99.
    number = response.name.removesuffix("_ms").rpartition("_")[2]
    return remark.code in HOLD_BACK and bool(re.search(rf"\b{re.escape(number)}\b", remark.text))
