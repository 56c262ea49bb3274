"""A run's contrasts judged, as findings, a table and sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perflab.analysis.comparison import Effect, compare, false_discovery, interaction
from perflab.analysis.verdict import Verdict, judge
from perflab.errors import AnalysisError
from perflab.recordings import Contrast, Run


@dataclass(frozen=True)
class Finding:
    """One contrast of one run: effect (None when nothing could be compared) and verdict."""

    run_id: str
    experiment: str
    backend: str
    contrast: Contrast
    effect: Effect | None
    p_adjusted: float
    verdict: Verdict


def evaluate(run: Run) -> list[Finding]:
    """Judge every contrast of a run on its valid, current trials."""
    trials = run.valid_trials()
    effects = [_effect(trials, contrast) for contrast in run.record.contrasts]
    known = [effect.p_value for effect in effects if effect is not None]
    adjusted = iter(false_discovery(known))
    return [
        Finding(
            run.run_id, run.record.experiment, run.record.backend, contrast, effect,
            next(adjusted) if effect is not None else float("nan"), judge(effect, contrast),
        )
        for contrast, effect in zip(run.record.contrasts, effects, strict=True)
    ]


def _effect(trials: pd.DataFrame, contrast: Contrast) -> Effect | None:
    if trials.empty or contrast.response not in trials:
        return None
    own = (
        _by_block(trials, contrast.numerator, contrast.response),
        _by_block(trials, contrast.denominator, contrast.response),
    )
    try:
        if contrast.interaction is None:
            return compare(*own)
        other = contrast.interaction
        return interaction(
            own,
            (
                _by_block(trials, other.numerator, contrast.response),
                _by_block(trials, other.denominator, contrast.response),
            ),
        )
    except AnalysisError:
        return None


def _by_block(trials: pd.DataFrame, levels: Mapping[str, str], response: str) -> pd.Series:
    """Return the response by block of the trials with these levels (their mean if several)."""
    chosen = pd.Series(True, index=trials.index)
    for factor, level in levels.items():
        chosen &= trials[f"factor_{factor}"] == level
    return trials[chosen].groupby("block")[response].mean()


def findings_table(findings: Sequence[Finding]) -> pd.DataFrame:
    """Return findings as a table, one row each; numbers that do not exist are NaN."""
    return pd.DataFrame([_row(finding) for finding in findings])


def _row(finding: Finding) -> dict[str, object]:
    contrast, effect, nothing = finding.contrast, finding.effect, float("nan")
    return {
        "experiment": finding.experiment,
        "backend": finding.backend,
        "claim": contrast.claim,
        "response": contrast.response,
        "published": contrast.published_ratio if contrast.published_ratio else nothing,
        "published direction": contrast.published_direction or "",
        "measured ratio": effect.ratio if effect else nothing,
        "95% low": effect.low if effect else nothing,
        "95% high": effect.high if effect else nothing,
        "n": effect.n if effect else 0,
        "p": effect.p_value if effect else nothing,
        "p (adjusted)": finding.p_adjusted,
        "verdict": str(finding.verdict.outcome),
        "source": contrast.source,
    }


def sentence(finding: Finding) -> str:
    """Return the verdict in one sentence, written from the data."""
    contrast, effect = finding.contrast, finding.effect
    if effect is None:
        return f"{contrast.name}: {finding.verdict.outcome} ({finding.verdict.reason})."
    published = (
        f"published {contrast.published_ratio:.2f}" if contrast.published_ratio
        else f"published direction: {contrast.published_direction}"
    )
    warned = f" Note: {'; '.join(effect.warnings)}." if effect.warnings else ""
    return (
        f"{contrast.name}: {contrast.response} ratio {effect.ratio:.2f} "
        f"[{effect.low:.2f}, {effect.high:.2f}], n = {effect.n} blocks, p = {effect.p_value:.3f} "
        f"({published}): {finding.verdict.outcome}, because {finding.verdict.reason}.{warned}"
    )


def summary_table(run: Run) -> pd.DataFrame:
    """Return one row per treatment: trials by state, and medians over its valid trials."""
    trials = run.trials()
    if len(trials):
        trials = trials[~trials["superseded"].astype(bool)]
    rows = [_treatment_row(treatment.name, treatment.label, trials)
            for treatment in run.record.treatments]
    return pd.DataFrame(rows).set_index("treatment")


def _treatment_row(name: str, label: str, trials: pd.DataFrame) -> dict[str, object]:
    own = trials[trials["treatment"] == name]
    valid = own[own["state"] == "valid"]
    row: dict[str, object] = {"treatment": label}
    row |= {state: int((own["state"] == state).sum()) for state in ("valid", "invalid", "failed")}
    row["requests/s"] = _median(valid, "throughput_rps")
    for column in ("mean_ms", "p50_ms", "p95_ms", "p99_ms"):
        row[column.replace("_", " ")] = _median(valid, column)
    for column in sorted(column for column in own if str(column).startswith("cpu_share_")):
        row["cpu " + str(column).removeprefix("cpu_share_")] = _median(valid, str(column))
    if "flush_p50_us" in own:
        row["flush p50 us"] = _median(valid, "flush_p50_us")
        row["flush p50 us, max"] = float(valid["flush_p50_us"].max()) if len(valid) else np.nan
    return row


def _median(trials: pd.DataFrame, column: str) -> float:
    if column not in trials or trials[column].dropna().empty:
        return float("nan")
    return float(trials[column].median())
