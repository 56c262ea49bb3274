"""How closely the latency of a run of streams goes with CPU and with volume."""

from __future__ import annotations

import math

import pandas as pd

from perflab.analysis.curves.correlation import Correlation, correlate
from perflab.numerals import counted
from perflab.recordings import Run
from perflab.systems.chat.analysis.windows import PHASES, stream_windows

LATENCY = "p90_ms"
QUESTIONS = {"CPU": "cpu", "volume": "messages_per_s"}


def relations(run: Run, service: str = "chat") -> pd.DataFrame:
    """Return a row per treatment and question, with the answer in words.

    Columns: treatment, question, answer. Every answer names its n: trials, which windows of a
    second are only a way to look at.
    """
    windows = stream_windows(run, service)
    rows = [
        {
            "treatment": item.label or item.name,
            "question": f"latency (p90) with {what}, within phases",
            "answer": _within_phases(own, column),
        }
        for item in run.record.treatments
        if len(own := windows[windows["treatment"] == item.name])
        for what, column in QUESTIONS.items()
    ]
    return pd.DataFrame(rows, columns=["treatment", "question", "answer"])


def _within_phases(own: pd.DataFrame, other: str) -> str:
    """Return the correlation with latency pooled over phases, and that of each phase."""
    together = _rho(correlate(own, other, LATENCY, phase="phase"))
    found = {
        name: correlate(own[own["phase"] == name], other, LATENCY, phase="phase") for name in PHASES
    }
    parts = [f"{name} {_value(each)}" for name, each in found.items() if math.isfinite(each.rho)]
    return f"{together}: {', '.join(parts)}" if parts else together


def _value(found: Correlation) -> str:
    known = math.isfinite(found.low)
    interval = f"[{found.low:.2f}, {found.high:.2f}]" if known else "(no interval)"
    return f"{found.rho:.2f} {interval}"


def _rho(found: Correlation) -> str:
    more = "".join(f"; {each}" for each in found.warnings)
    if not math.isfinite(found.rho):
        return f"no correlation can be told (n = 0 trials{more})"
    trials = counted(found.n, "trial")
    return f"rho {_value(found)} (n = {trials}, {found.windows} windows{more})"
