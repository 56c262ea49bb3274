"""What goes with what in a run of streams: latency, CPU, volume and users, each with its n."""

from __future__ import annotations

import math

import pandas as pd

from perflab.analysis.curves.correlation import Correlation, correlate
from perflab.analysis.curves.knees import knee
from perflab.numerals import counted
from perflab.recordings import Run
from perflab.systems.chat.analysis.volume import published_factor, volume_laws
from perflab.systems.chat.analysis.windows import PHASES, bands, stream_windows

LATENCY = "p90_ms"


def relations(run: Run, service: str = "chat") -> pd.DataFrame:
    """Return one row per question about a run, with the answer in words.

    Columns: treatment, question, answer. Every answer names its n: trials, which windows of a
    second are only a way to look at; the knee, which no trial could tell in one number, takes
    blocks of windows below 8 trials, and says that its interval is then for these trials only.
    """
    windows = stream_windows(run, service)
    rows = []
    for item in run.record.treatments:
        own = windows[windows["treatment"] == item.name]
        if own.empty:
            continue
        answers = {
            "latency (p90) with CPU, within phases": _within_phases(own, "cpu"),
            "latency (p90) with volume, within phases": _within_phases(own, "messages_per_s"),
            "where latency bends with CPU": knee(own, "cpu", LATENCY).text(),
        }
        label = item.label or item.name
        rows += [{"treatment": label, "question": q, "answer": a} for q, a in answers.items()]
    factor = published_factor(run)
    law = "the power 2" if factor is None else f"the power 2 ({factor:g} n^2)"
    rows += [
        {
            "treatment": "all",
            "question": f"volume against users {where}",
            "answer": f"{found.text()}; published: {law}",
        }
        for where, found in volume_laws(run, windows).items()
    ]
    names = [item.name for item in run.record.treatments]
    if len(names) == 2:
        answer = bands(windows, names[0], names[1]).text()
        question = "first treatment against second"
        rows.append({"treatment": "both", "question": question, "answer": answer})
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
