"""From a run to its findings: every contrast measured, judged, and put into words."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from perflab.analysis.comparison import Effect, benjamini_hochberg, effect_of, log_ratios
from perflab.analysis.covariate import adjustment
from perflab.analysis.decision import Decision, Kind, decide
from perflab.analysis.verdict import Outcome, Verdict, judge
from perflab.errors import AnalysisError
from perflab.recordings import Contrast, ContrastPair, Run, Scale

TABLE_COLUMNS = [
    "claim", "response", "published", "measured", "95% low", "95% high", "n", "p",
    "p (adjusted)", "effect size", "decision", "verdict", "source",
]  # fmt: skip
# Measured around every trial; a response is corrected for it where that is shown to help.
COVARIATE = "cpu_probe_ms"


@dataclass(frozen=True)
class Finding:
    """A contrast of a run with its effect (None: there is none), decision, verdict and warnings.

    ``p_adjusted`` is corrected over the contrasts of the run (Benjamini-Hochberg);
    ``blocks`` are the numbers of those compared, ``left_out`` counts those that lack a side.
    """

    contrast: Contrast
    effect: Effect | None
    verdict: Verdict
    decision: Decision | None = None
    blocks: tuple[int, ...] = ()
    left_out: int = 0
    p_adjusted: float = math.nan
    warnings: tuple[str, ...] = ()


def evaluate(run: Run) -> list[Finding]:
    """Measure and judge every contrast of a run, on valid trials, paired within blocks."""
    trials = run.valid_trials()
    findings = [_finding(run, contrast, trials) for contrast in run.record.contrasts]
    adjusted = benjamini_hochberg(
        [math.nan if f.effect is None else f.effect.p_value for f in findings]
    )
    return [replace(f, p_adjusted=p) for f, p in zip(findings, adjusted, strict=True)]


def _finding(run: Run, contrast: Contrast, trials: pd.DataFrame) -> Finding:
    if contrast.not_testable:
        return Finding(contrast, None, judge(None, contrast))
    try:
        by_block, adjusted = _effects(run, contrast, trials)
        effect = effect_of(by_block, scale=contrast.scale)
    except AnalysisError as error:
        return Finding(
            contrast, None, Verdict(Outcome.INCONCLUSIVE, str(error)), warnings=(str(error),)
        )
    return Finding(
        contrast,
        effect,
        judge(effect, contrast),
        # Its margin is a share, so it can say nothing of differences.
        decide(effect.by_block) if contrast.scale == "ratio" else None,
        blocks=tuple(int(block) for block in by_block.dropna().index),
        left_out=int(by_block.isna().sum()),
        warnings=(*effect.warnings, *filter(None, [adjusted])),
    )


def _effects(run: Run, contrast: Contrast, trials: pd.DataFrame) -> tuple[pd.Series[Any], str]:
    """Return the log ratio or difference in every block, and what it was adjusted for."""
    effects = _between(run, contrast, contrast.response, trials)
    if contrast.scale == "difference":
        return effects, ""
    found = adjustment(trials, contrast.response, COVARIATE)
    if found.used:
        effects -= found.slope * _between(run, contrast, COVARIATE, trials)
    return effects, found.text()


def _between(run: Run, contrast: Contrast, response: str, trials: pd.DataFrame) -> pd.Series[Any]:
    """Return a response's log ratio or difference in every block, NaN where a side is missing."""
    if response not in trials.columns:
        raise AnalysisError(f"the trials have no column '{response}'")

    def of(pair: ContrastPair) -> pd.Series[Any]:
        above, below = (
            _by_block(run, levels, response, trials, contrast.scale)
            for levels in (pair.numerator, pair.denominator)
        )
        return log_ratios(above, below) if contrast.scale == "ratio" else above - below

    return of(contrast) - of(contrast.interaction) if contrast.interaction else of(contrast)


def _by_block(
    run: Run, levels: dict[str, str], response: str, trials: pd.DataFrame, scale: Scale
) -> pd.Series[Any]:
    """Return the response per block: its mean where several treatments are selected.

    The mean is geometric for ratios. NaN in blocks that lack one of them.
    """
    names = run.record.selected(levels)
    if not names:
        wanted = ", ".join(f"{factor}={level}" for factor, level in levels.items())
        raise AnalysisError(f"no treatment of the run has {wanted}")
    own = trials[trials["treatment"].isin(names)]
    wide = own.pivot(index="block", columns="treatment", values=response)
    wide = wide.reindex(index=pd.RangeIndex(run.record.blocks), columns=names).astype(float)
    if len(names) == 1:
        return wide[names[0]]
    if scale == "difference":
        return wide.mean(axis=1, skipna=False)
    if (wide <= 0).any(axis=None):
        raise AnalysisError(f"{response} is not positive in every trial; a ratio needs that")
    return wide.apply(lambda row: float(np.exp(np.log(row).mean(skipna=False))), axis=1)


def findings_table(findings: list[Finding]) -> pd.DataFrame:
    """Return one row per finding, published beside measured; NaN where there is no effect."""
    return pd.DataFrame([_row(finding) for finding in findings], columns=TABLE_COLUMNS)


def _row(finding: Finding) -> dict[str, Any]:
    contrast, effect = finding.contrast, finding.effect
    return {
        "claim": contrast.claim,
        "response": response_text(contrast),
        "published": published_text(contrast),
        "measured": effect.estimate if effect else math.nan,
        "95% low": effect.low if effect else math.nan,
        "95% high": effect.high if effect else math.nan,
        "n": effect.n if effect else 0,
        "p": effect.p_value if effect else math.nan,
        "p (adjusted)": finding.p_adjusted,
        "effect size": effect.size if effect else math.nan,
        "decision": decision_text(finding),
        "verdict": str(finding.verdict),
        "source": contrast.source,
    }


def decision_text(finding: Finding) -> str:
    """Return what may be said of a difference as such, whatever was published."""
    if finding.decision is None:
        return ""
    return "different" if finding.decision.kind is Kind.DIFFERENT else finding.decision.text


def response_text(contrast: Contrast) -> str:
    """Return what a contrast is of: ratios of a response, unless it says "difference"."""
    return f"{contrast.response}, difference" if _is_difference(contrast) else contrast.response


def _is_difference(contrast: Contrast) -> bool:
    return contrast.scale == "difference"


def published_text(contrast: Contrast) -> str:
    """Return the published effect: a ratio or difference, a direction, or an empty string."""
    is_difference = _is_difference(contrast)
    size = contrast.published_difference if is_difference else contrast.published_ratio
    if size is not None:
        return f"{size:.3g}"
    nothing = 0 if is_difference else 1
    words = {
        "greater": f"greater than {nothing}",
        "smaller": f"smaller than {nothing}",
        "none": "no effect",
    }
    return words.get(contrast.published_direction or "", "")


def sentence(finding: Finding) -> str:
    """Return the verdict in one sentence written from the data."""
    contrast, effect, verdict = finding.contrast, finding.effect, finding.verdict
    source = "" if contrast.source == "none" else f" ({contrast.source})"
    head = f"{str(verdict).capitalize()}{source}: {contrast.claim}"
    if effect is None:
        return f"{head}; {verdict.reason}."
    published = published_text(contrast)
    beside = f", published {published}" if published else ""
    measured = f"measured {contrast.scale} of {contrast.response} {_measured(effect)}{beside}"
    more = [f"{finding.left_out} blocks left out"] if finding.left_out else []
    undecided = (Outcome.INCONCLUSIVE, Outcome.UNPUBLISHED)
    if verdict.outcome in undecided and finding.decision is not None:
        more.append(decision_text(finding))
    more += [text for text in finding.warnings if text.startswith("adjusted for")]
    return "; ".join([head, measured, verdict.reason, *more]) + "."


def _measured(effect: Effect) -> str:
    blocks = f"n = {effect.n} block{'s' if effect.n != 1 else ''}"
    if not math.isfinite(effect.low):
        return f"{effect.estimate:.3g} (no interval, {blocks})"
    p = "p < 0.001" if effect.p_value < 0.001 else f"p = {effect.p_value:.2g}"
    return (
        f"{effect.estimate:.3g} [{effect.low:.3g}, {effect.high:.3g}] (95% interval, {blocks}, {p})"
    )
