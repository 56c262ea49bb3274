"""The effects of a run as rows that stand beside those of any other run."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

from perflab.analysis.treatments.evaluation import Finding, evaluate
from perflab.recordings import Rows, Run, fingerprint

EFFECTS = pa.schema(
    [
        *((name, pa.string()) for name in ("contrast", "claim", "response", "unit", "scale")),
        *((name, pa.float64()) for name in ("effect", "low", "high", "confidence")),
        ("n", pa.int64()),
        *((name, pa.float64()) for name in ("p_value", "p_adjusted")),
        *((name, pa.string()) for name in ("bound", "verdict", "absent", "noise")),
    ]
)


def effects_of(run: Run) -> pa.Table:
    """Return a row per contrast of a run: its effect with interval, n, p-value and verdict.

    ``effect`` is a ratio, or by its ``scale`` a difference in ``unit``; NaN where there is none
    (``absent`` says why) or only a ``bound``. ``n`` counts blocks.
    """
    return pa.Table.from_pylist([_told(finding) for finding in evaluate(run)], EFFECTS)


def effects_kept() -> Rows:
    """Return what is kept of every run's effects."""
    return Rows("effects", effects_of, EFFECTS, fingerprint("recordings", "analysis"))


def _told(finding: Finding) -> dict[str, Any]:
    contrast, effect = finding.contrast, finding.effect
    row: dict[str, Any] = {
        "contrast": contrast.name,
        "claim": contrast.claim,
        "response": contrast.response,
        "unit": finding.response.unit if contrast.scale == "difference" else "",
        "scale": contrast.scale,
        "effect": math.nan,
        "low": math.nan,
        "high": math.nan,
        "confidence": math.nan,
        "n": 0,
        "p_value": math.nan,
        "p_adjusted": finding.p_adjusted,
        "bound": "",
        "verdict": finding.verdict.outcome.value,
        "absent": finding.absent or finding.contrast.not_testable,
        "noise": "; ".join(finding.noise),
    }
    if effect is not None:
        row |= {"effect": effect.estimate, "n": effect.n, "bound": effect.bound}
        names = ("low", "high", "confidence", "p_value")
        row |= {name: getattr(effect, name) for name in names}
    return row
