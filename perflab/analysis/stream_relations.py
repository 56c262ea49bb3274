"""What goes with what in a run of streams: latency, CPU, volume and users, each with its n."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd

from perflab.analysis.correlation import Correlation, correlate
from perflab.analysis.jackknife import Interval
from perflab.analysis.knee import knee
from perflab.analysis.lag import lag
from perflab.analysis.power_law import ENOUGH_BLOCKS, PowerLaw, power_law
from perflab.analysis.streams import WIDTH_S, bands, stream_windows
from perflab.recordings import Run

LATENCY = "p90_ms"
# Fewer users send too rarely for a window to hold a rate.
FEWEST_USERS = 10


def relations(run: Run, service: str = "chat") -> pd.DataFrame:
    """Return one row per question about a run, with the answer in words.

    Columns: treatment, question, answer. The unit is the trial; windows of a second are only what
    a trial is looked at through.
    """
    windows = stream_windows(run, service)
    rows = []
    for item in run.record.treatments:
        own = windows[windows["treatment"] == item.name]
        if own.empty:
            continue
        answers = {
            "latency (p90) with CPU": _rho(correlate(own, "cpu", LATENCY)),
            "latency (p90) with volume": _rho(correlate(own, "messages_per_s", LATENCY)),
            "lag of latency behind CPU": lag(own, "cpu", LATENCY, WIDTH_S).text(),
            "CPU from which latency rises": knee(own, "cpu", LATENCY).text(),
        }
        label = item.label or item.name
        rows += [{"treatment": label, "question": q, "answer": a} for q, a in answers.items()]
    rows.append(
        {
            "treatment": "all",
            "question": "volume against users",
            "answer": f"{volume_law(windows).text()}; published: the power 2 (0.1 n^2)",
        }
    )
    names = [item.name for item in run.record.treatments]
    if len(names) == 2:
        answer = bands(windows, names[0], names[1]).text()
        question = "first treatment against second"
        rows.append({"treatment": "both", "question": question, "answer": answer})
    return pd.DataFrame(rows, columns=["treatment", "question", "answer"])


def crowds(windows: pd.DataFrame) -> pd.DataFrame:
    """Return volume by crowd: one row per trial and tenth of the largest crowd.

    A message goes from those who act to those who are connected, a monitor included; where these
    differ (users who have joined and not begun) ``crowd`` is their geometric mean. Columns: block
    (the trial's), crowd, messages_per_s.
    """
    # Seconds without a delivery count as well: without them small crowds would look busier.
    busy = windows[windows["acting"] >= FEWEST_USERS]
    if busy.empty:
        return pd.DataFrame(columns=["block", "crowd", "messages_per_s"])
    size = np.sqrt(busy["acting"] * busy["listeners"])
    place = np.ceil(10 * size / size.max())
    means = busy.assign(crowd=size).groupby([busy["trial_id"], place])
    table = means[["crowd", "messages_per_s"]].mean()
    return table.reset_index().rename(columns={"trial_id": "block"})[
        ["block", "crowd", "messages_per_s"]
    ]


def volume_law(windows: pd.DataFrame) -> PowerLaw:
    """Fit volume = a crowd^b, one exponent per trial; see :func:`crowds`.

    Refused below 4 trials: the sizes that a crowd has within a trial are not trials.
    """
    table = crowds(windows)
    found = power_law(table, "crowd", "messages_per_s")
    trials = int(table["block"].nunique())
    if trials >= ENOUGH_BLOCKS or not found.supported:
        return found
    reason = f"no exponent from {trials} trials: {ENOUGH_BLOCKS} are needed"
    nothing = Interval.missing()
    return replace(
        found, factor=nothing, exponent=nothing, n=trials, supported=False, reason=reason
    )


def _rho(found: Correlation) -> str:
    if not math.isfinite(found.rho):
        return "too few windows"
    known = math.isfinite(found.low)
    interval = f"[{found.low:.2f}, {found.high:.2f}]" if known else "(no interval)"
    return f"rho {found.rho:.2f} {interval}, n = {found.n} trials, {found.windows} windows"
