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
from perflab.recordings import Contrast, ContrastPair, Run

TABLE_COLUMNS = [
    "claim", "response", "published", "measured ratio", "95% low", "95% high", "n", "p",
    "p (adjusted)", "effect size", "decision", "verdict", "source",
]  # fmt: skip
# Measured around every trial; a response is corrected for it where that is shown to help.
COVARIATE = "cpu_probe_ms"


@dataclass(frozen=True)
class Finding:
    """A contrast of a run with its effect (None: there is none), decision, verdict and warnings.

    ``p_adjusted`` is corrected over the contrasts of the run (Benjamini-Hochberg);
    ``left_out`` counts the blocks in which a side is missing.
    """

    contrast: Contrast
    effect: Effect | None
    verdict: Verdict
    decision: Decision | None = None
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
        differences = _log_ratios(run, contrast, contrast.response, trials)
        found = adjustment(trials, contrast.response, COVARIATE)
        if found.used:
            differences -= found.slope * _log_ratios(run, contrast, COVARIATE, trials)
        effect = effect_of(differences)
    except AnalysisError as error:
        return Finding(
            contrast, None, Verdict(Outcome.INCONCLUSIVE, str(error)), warnings=(str(error),)
        )
    return Finding(
        contrast,
        effect,
        judge(effect, contrast),
        decide(effect.log_ratios),
        left_out=int(differences.isna().sum()),
        warnings=(*effect.warnings, *filter(None, [found.text()])),
    )


def _log_ratios(
    run: Run, contrast: Contrast, response: str, trials: pd.DataFrame
) -> pd.Series[Any]:
    """Return the log ratio of a contrast in every block, NaN where a side is missing."""
    if response not in trials.columns:
        raise AnalysisError(f"the trials have no column '{response}'")

    def of(pair: ContrastPair) -> pd.Series[Any]:
        return log_ratios(
            _by_block(run, pair.numerator, response, trials),
            _by_block(run, pair.denominator, response, trials),
        )

    return of(contrast) - of(contrast.interaction) if contrast.interaction else of(contrast)


def _by_block(
    run: Run, levels: dict[str, str], response: str, trials: pd.DataFrame
) -> pd.Series[Any]:
    """Return the response per block: the geometric mean where several treatments are selected.

    NaN in blocks that lack one of them.
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
        "response": contrast.response,
        "published": published_text(contrast),
        "measured ratio": effect.ratio if effect else math.nan,
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


def published_text(contrast: Contrast) -> str:
    """Return the published effect: a ratio, a direction, or an empty string."""
    if contrast.published_ratio is not None:
        return f"{contrast.published_ratio:.3g}"
    words = {"greater": "greater than 1", "smaller": "smaller than 1", "none": "no effect"}
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
    measured = f"measured ratio of {contrast.response} {_measured(effect)}{beside}"
    more = [f"{finding.left_out} blocks left out"] if finding.left_out else []
    undecided = (Outcome.INCONCLUSIVE, Outcome.UNPUBLISHED)
    if verdict.outcome in undecided and finding.decision is not None:
        more.append(decision_text(finding))
    more += [text for text in finding.warnings if text.startswith("adjusted for")]
    return "; ".join([head, measured, verdict.reason, *more]) + "."


def _measured(effect: Effect) -> str:
    blocks = f"n = {effect.n} block{'s' if effect.n != 1 else ''}"
    if not math.isfinite(effect.low):
        return f"{effect.ratio:.3g} (no interval, {blocks})"
    p = "p < 0.001" if effect.p_value < 0.001 else f"p = {effect.p_value:.2g}"
    return f"{effect.ratio:.3g} [{effect.low:.3g}, {effect.high:.3g}] (95% interval, {blocks}, {p})"
