"""Where the nearest broken line of latency over CPU bends: a knee, or none."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from perflab.analysis.curves.bent_or_smooth import QUEUE, STRAIGHT, Shapes, drawn, shapes
from perflab.analysis.curves.broken_line import Bend, bend
from perflab.analysis.curves.needed import check_columns
from perflab.analysis.curves.queueing import QueueCurve, queueing_curve
from perflab.analysis.methods.clustering import (
    ONLY_THESE,
    TRIALS,
    Clusters,
    clusters,
    unit,
    with_evidence,
)
from perflab.analysis.methods.comparison import CONFIDENCE, USUAL_P

SMALLEST_WINDOWS = 60
# Beyond these a value is no CPU share and no latency, in whatever unit.
MOST_CORES, LONGEST = 1e5, 1e15
OUTLIER = 3.0
BINS = 20
METHOD = "broken line on log latency, test and interval by flipped scores of {}"


@dataclass(frozen=True)
class Knee:
    """Where the broken line nearest to latency over CPU bends, over the windows of several trials.

    ``cpu``, ``low`` and ``high`` (1.0 = one core) are NaN where ``supported`` is False: there is
    no knee, or the data cannot tell, as ``reason`` says. ``p_value`` is that of a straight line
    against a bend. ``before`` and ``after`` are slopes of log latency per core. ``doubled`` is the
    CPU share at which the queueing curve has doubled the idle latency, with its interval; NaN
    where the queueing curve does not fit better, or doubles only beyond the largest CPU share
    seen. ``shape`` is the model that is drawn, and ``curve`` holds points (CPU, latency) of it.
    ``smooth`` names a curve without a bend that fits as well as the broken line, by BIC (empty:
    none does): the bend is then no threshold. ``n`` counts trials, ``windows`` their windows;
    ``unit`` says what test and interval count: the trials, or below 8 of them the blocks of windows
    within them. Empty where nothing was fitted.
    """

    cpu: float
    low: float
    high: float
    p_value: float
    before: float
    after: float
    doubled: float
    doubled_low: float
    doubled_high: float
    shape: str
    curve: tuple[tuple[float, float], ...]
    n: int
    windows: int
    supported: bool
    confidence: float
    method: str
    reason: str = ""
    warnings: tuple[str, ...] = ()
    unit: str = ""
    smooth: str = ""

    def text(self) -> str:
        """Return the knee in a sentence, or why there is none, with n, its unit and warnings."""
        return with_evidence(self.words(), self.unit, self.warnings, self.reason)

    def words(self) -> str:
        """Return the same without what it rests on."""
        if not self.supported:
            return self.reason
        bend = f"the nearest broken line bends at {_percent(self.cpu, self.low, self.high)} CPU"
        if not self.smooth:
            rises = "rises" if self.before <= self.after / 5 else "rises faster"
            return f"{bend}: latency {rises} from there on"
        words = f"{bend}, but a smooth curve ({self.smooth}) fits as well: latency rises gradually"
        if not math.isfinite(self.doubled_low):
            return words
        doubled = _percent(self.doubled, self.doubled_low, self.doubled_high)
        return f"{words}, as before a queue, and has doubled at {doubled}"


def _percent(value: float, low: float, high: float) -> str:
    return f"{100 * value:.0f}% [{100 * low:.0f}, {100 * high:.0f}]"


def knee(
    table: pd.DataFrame, cpu: str, latency: str = "p50_ms", confidence: float = CONFIDENCE
) -> Knee:
    """Find the CPU share from which latency rises.

    A broken line is fitted to log latency against CPU, outliers drawn in. It is a knee only where
    a straight line is refused (p < 5%) and the line bends upward to a rise. From 8 trials on trials
    are the unit; below that blocks of windows within trials are, each trial with a level of its
    own, so that trials have to span the knee themselves; the interval is then for these trials
    and says nothing of others. A queueing curve is fitted beside it.

    Parameters
    ----------
    table : DataFrame
        Windows of :func:`~perflab.analysis.windows`, in the order they happened within a trial;
        needs trial_id and both columns. Windows without a latency or CPU share are left out.

    Returns
    -------
    Knee
        Not supported with fewer than 60 windows or 8 clusters, without room on the CPU axis, or
        where no upward bend is shown (latency may still rise throughout).

    Raises
    ------
    AnalysisError
        A column is missing.

    Notes
    -----
    For data from a smooth curve the knee is the bend of the nearest broken line and depends on
    which CPU shares were seen; ``smooth`` says so, and ``doubled`` is the better number.

    Sources: see :mod:`~perflab.analysis.curves.broken_line`,
    :mod:`~perflab.analysis.curves.queueing` and
    :mod:`~perflab.analysis.methods.clustering`; BIC: G. Schwarz, Ann. Stat. 6, 1978.
    """
    check_columns(table, "windows", ("trial_id", cpu, latency))
    trial, x, y = _usable(table, cpu, latency)
    n = int(trial[-1]) + 1 if len(trial) else 0
    own, trials = clusters(trial), unit(n, TRIALS, n)
    if len(x) < SMALLEST_WINDOWS or own is None:
        reason = f"too few windows for a knee: {len(x)} in {trials}; {SMALLEST_WINDOWS} needed"
        return _none(reason, n, len(x), confidence)
    calm = _calmed(x, y)
    found = bend(x, calm, own, confidence)
    if found is None:
        reason = f"no knee can be seen in {trials}: the CPU shares are too much alike"
        return _none(reason, n, len(x), confidence)
    return _described(x, calm, own, found, n, confidence)


def _usable(
    table: pd.DataFrame, cpu: str, latency: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return trial numbers, CPU and log latency of usable windows, trial after trial."""
    x = pd.to_numeric(table[cpu], errors="coerce").to_numpy(float)
    y = pd.to_numeric(table[latency], errors="coerce").to_numpy(float)
    good = (x >= 0) & (x <= MOST_CORES) & (y > 1 / LONGEST) & (y < LONGEST)
    trial = pd.factorize(table["trial_id"][good])[0]
    order = np.argsort(trial, kind="stable")
    return trial[order], x[good][order], np.log(y[good][order])


def _calmed(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return ``y`` with outliers drawn in to 3 deviations from the medians of bins of ``x``."""
    edges = np.unique(np.quantile(x, np.linspace(0, 1, BINS + 1)))
    place = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, max(0, len(edges) - 2))
    middles = pd.DataFrame({"x": x, "y": y}).groupby(place).median()
    usual = np.interp(x, middles["x"], middles["y"])
    reach = OUTLIER * float(stats.median_abs_deviation(y - usual, scale="normal"))
    calm: np.ndarray = usual + np.clip(y - usual, -reach, reach) if reach > 0 else y
    return calm


def _described(
    x: np.ndarray, y: np.ndarray, own: Clusters, found: Bend, n: int, confidence: float
) -> Knee:
    queue = queueing_curve(x, y, own, confidence)
    supported = found.p_value < USUAL_P and found.after > 0
    seen = shapes(x, y, own, found, queue) if supported else Shapes(STRAIGHT)
    queue = queue if seen.shape == QUEUE else None
    missing = math.nan
    # Beyond what was seen the curve is a guess, and may even pass 100%.
    doubled = queue if queue and queue.doubled <= x.max() else None
    return Knee(
        found.place if supported else missing,
        found.low if supported else missing,
        found.high if supported else missing,
        found.p_value,
        found.before if supported else found.slope,
        found.after if supported else found.slope,
        doubled.doubled if doubled else missing,
        doubled.low if doubled else missing,
        doubled.high if doubled else missing,
        seen.shape,
        drawn(x, y, own, found, queue, seen.shape),
        n,
        len(x),
        supported,
        confidence,
        METHOD.format(own.kind),
        "" if supported else _why_not(found),
        _warnings(found, own, queue, float(x.max())) if supported else (),
        unit(own.count, own.kind, n),
        seen.smooth,
    )


def _why_not(found: Bend) -> str:
    if found.p_value >= USUAL_P:
        return f"no knee: no upward bend can be shown, p = {found.p_value:.2g}"
    return "no knee: latency falls with CPU throughout"


def _warnings(
    found: Bend, own: Clusters, queue: QueueCurve | None, largest: float
) -> tuple[str, ...]:
    warnings = []
    if found.open_low or found.open_high:
        side = " and ".join(
            name
            for name, is_open in (("low", found.open_low), ("high", found.open_high))
            if is_open
        )
        warnings.append(f"the interval reaches the {side} end of the CPU shares seen")
    if queue is not None and queue.doubled > largest:
        warnings.append("latency has not doubled within the CPU shares seen")
    elif queue is not None and queue.high > largest:
        warnings.append("the interval of its doubling ends beyond the CPU shares seen")
    if own.kind != TRIALS:
        warnings.append(ONLY_THESE)
    return tuple(warnings)


def _none(reason: str, n: int, windows: int, confidence: float) -> Knee:
    missing = math.nan
    return Knee(
        *(missing,) * 9, "none", (), n, windows, False, confidence, "none", reason, (reason,)
    )
