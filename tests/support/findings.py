"""Findings as a table of everything that is known of them."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from perflab.analysis.evaluation import Finding
from perflab.analysis.findings import (
    decision_text,
    left_out,
    published_text,
    scope_words,
)
from perflab.statistics.comparison import Effect, SizeBound


def findings_table(findings: list[Finding]) -> pd.DataFrame:
    """Return one row per finding; numbers are NaN if there is no effect."""
    return pd.DataFrame([_row(finding) for finding in findings])


def _row(finding: Finding) -> dict[str, Any]:
    contrast, effect = finding.contrast, finding.effect
    scale = f", {contrast.scale}" if contrast.scale != "ratio" else ""
    return {
        "claim": contrast.claim,
        "response": f"{contrast.response}{scale}",
        "published": published_text(finding),
        "measured": effect.estimate if effect else math.nan,
        "95% low": _end(effect, "at most"),
        "95% high": _end(effect, "at least"),
        "achieved": effect.confidence if effect else math.nan,
        "n": effect.n if effect else 0,
        "p": effect.p_value if effect else math.nan,
        "p (adjusted)": finding.p_adjusted,
        "decision": decision_text(finding),
        "verdict": str(finding.verdict),
        "shown": "yes" if finding.verdict.is_shown else "no",
        "scope": scope_words(finding),
        "valid trials": finding.valid,
        "trials": finding.trials,
        "left out": left_out(finding),
        "noise": "; ".join(finding.noise),
        "source": contrast.source,
    }


def _end(effect: Effect | None, open_where: SizeBound) -> float:
    """Return an end of an effect's interval; NaN if it is open."""
    if effect is None or effect.bound == open_where:
        return math.nan
    return effect.low if open_where == "at most" else effect.high
