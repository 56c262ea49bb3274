"""How far a finding holds: for the load that was asked for, or also at the end of that load.

A comparison is about the load as asked for, without its warm-up. Where a ratio moves over the load,
a longer load would have another. So the scope of a decided finding is told beside it; drift removes
no trial, and changes neither interval nor p-value.

D is the change of a block's log ratio from the whole load to its end
(:func:`perflab.load.checks.trend.drifts`). The interval of the effect is extended on each side by
the outer end of D's 80% interval, where that end lies beyond 0:

- If the verdict stays the same, the finding also holds at the end of the load.
- If it does not, and the 95% interval of D excludes 0, the finding holds for this load only.
- Otherwise, and where values rise or fall from block to block, nothing is known beyond the load,
  and nothing is said.

``docs/explanation/verdicts.md`` says how often the extended interval holds the ratio at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from perflab.analysis.decision import Decision, decide
from perflab.analysis.results import OPEN, Compared, Verdict
from perflab.analysis.verdict import judge
from perflab.analysis.zones import is_published
from perflab.recordings import Contrast
from perflab.statistics.comparison import Effect
from perflab.statistics.families import Corrected
from perflab.statistics.mean_intervals import CONFIDENCE, SMALLEST_N, mean_interval

ALSO_AT_THE_END = "also at the end of the load"
THIS_LOAD_ONLY = "for this load only"
EXTENDED_BY = 0.80


def extended(effect: Effect, drifts: Sequence[float]) -> Effect:
    """Return an effect whose intervals hold the ratio at the end of the load, too.

    ``drifts`` are the changes of the log ratio from the whole load to its end, one for each block.
    """
    drift = mean_interval(np.asarray(drifts), EXTENDED_BY, effect.looks)
    down, up = math.exp(min(0.0, drift.low)), math.exp(max(0.0, drift.high))
    return replace(
        effect,
        low=effect.low * down,
        high=effect.high * up,
        narrow_low=effect.narrow_low * down,
        narrow_high=effect.narrow_high * up,
    )


def scope_of(
    effect: Effect,
    contrast: Contrast,
    verdict: Verdict,
    decision: Decision | None,
    drifts: Sequence[float],
    among: Corrected | None = None,
    is_steady: bool = True,
) -> str:
    """Return how far a verdict, or the decision if nothing is published, holds; or nothing.

    ``among`` is the p-value among the run's claims about the response. Where its blocks are not
    steady (:mod:`perflab.analysis.doubts.block_trend`), the load changes what it measures, and
    nothing is known beyond it.
    """
    is_known = contrast.scale == "ratio" and math.isfinite(effect.low) and not effect.bound
    if not is_known or effect.n < SMALLEST_N or len(drifts) != effect.n:
        return ""
    longer = extended(effect, drifts)
    if not is_published(contrast):
        result = decision.result if decision else Compared.NOT_DECIDED
        is_decided, is_same = result not in OPEN, decide(longer).result is result
    else:
        is_decided = verdict.result not in OPEN
        is_same = judge(longer, contrast, among).result is verdict.result
    if not is_decided:
        return ""
    if is_same:
        return ALSO_AT_THE_END if is_steady else ""
    drift = mean_interval(np.asarray(drifts), CONFIDENCE, effect.looks)
    if not (drift.low > 0 or drift.high < 0):
        return ""
    middle, low, high = (
        f"{math.expm1(value):+.0%}" for value in (drift.estimate, drift.low, drift.high)
    )
    return f"{THIS_LOAD_ONLY}; the ratio moved by {middle} [{low}, {high}]"
