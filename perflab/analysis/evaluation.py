"""From a run to its findings: every contrast is measured and judged, with its evidence."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pandas as pd

from perflab.analysis.blocks import ends_of, sides_of
from perflab.analysis.computed_responses import trials_with
from perflab.analysis.decision import Decision, decide, of_busy_machine
from perflab.analysis.doubts.block_trend import block_trend
from perflab.analysis.doubts.bound_causes import way_out_of_bound
from perflab.analysis.doubts.failed_requests import counts_of, has_counts, refuse_unlike
from perflab.analysis.doubts.memory_growth import after_equal_requests
from perflab.analysis.doubts.refused_trials import Refused, refused_trials
from perflab.analysis.doubts.unseen_answers import unseen_answers
from perflab.analysis.gates.first_line import are_of_a_duel, corrected_over_first_line
from perflab.analysis.noise import is_loaded, noise_flags
from perflab.analysis.results import AgainstStudy, Compared, Verdict
from perflab.analysis.scope import scope_of
from perflab.analysis.starts import ONE_START, effect_of_run, has_one_start, starts_of
from perflab.analysis.validity import why_absent
from perflab.analysis.verdict import against_limit, compared, judge, without_effect
from perflab.analysis.zones import is_published
from perflab.errors import AnalysisError
from perflab.recordings import Contrast, Response, Run, response_of
from perflab.recordings.responses import drift_column, is_share
from perflab.statistics.block_ends import Ends
from perflab.statistics.comparison import Effect, NothingLimits
from perflab.statistics.families import Corrected, corrected
from perflab.statistics.mean_intervals import SMALLEST_N
from perflab.statistics.shares import difference_of_shares

# The end of a claim on one of several percentiles: ``(p90)``, ``(p99 of what is sent late)``.
PERCENTILE = re.compile(r" \((p\d+)\b( of [^();]*)?[^()]*\)$")
# The verdict on an effect before the run's other claims are known.
NOT_YET = Verdict(Compared.NOT_DECIDED, "")
COMPLETE = "both sides have 100%"


def without_percentile(claim: str) -> str:
    """Return a claim as claims on several percentiles share it."""
    return PERCENTILE.sub(lambda end: f" ({end[2].strip()})" if end[2] else "", claim)


@dataclass(frozen=True)
class Finding:
    """A contrast of a run with its effect (None: there is none), decision and verdict.

    ``p_adjusted`` is the p-value adjusted over the tested ``claims`` about the response, or of a
    duel's first line (:mod:`perflab.analysis.gates.first_line`); verdict and decision use it. A
    claim whose answer the load sets is not among them, because an effect that cannot fail would
    lower the adjusted p-values of the others. ``blocks`` are the numbers of the compared blocks,
    and ``left_out`` counts the blocks that lack a side. ``valid`` of the ``trials`` of its
    treatments are valid. ``absent`` says why there is no number, or none from the blocks that were
    left out.
    ``drifts`` are the changes of each block's log ratio to the end of the load (empty: unknown),
    and ``scope`` says how far the finding holds (:mod:`perflab.analysis.scope`). If more than a
    tenth of a time may be the client's own, ``if_alike`` is the effect if that part adds as much on
    both sides (:mod:`perflab.analysis.blocks`). ``refused`` are the refused trials, where one side
    has more of them. ``way_out`` says what would tell more where only a bound is known, and
    ``growth`` how a memory grows that still does at the end of its loads
    (:mod:`perflab.analysis.doubts.memory_growth`). ``is_complete``: both sides have all that a
    share can have, so a claim that it differs cannot be tested at this load.
    """

    contrast: Contrast
    response: Response
    effect: Effect | None
    verdict: Verdict
    decision: Decision | None = None
    blocks: tuple[int, ...] = ()
    left_out: int = 0
    p_adjusted: float = math.nan
    claims: int = 0
    valid: int = 0
    trials: int = 0
    noise: tuple[str, ...] = ()
    absent: str = ""
    drifts: tuple[float, ...] = ()
    scope: str = ""
    if_alike: Effect | None = None
    refused: Refused | None = None
    way_out: str = ""
    growth: str = ""
    is_complete: bool = False


def evaluate(run: Run) -> list[Finding]:
    """Measure and judge every contrast of a run, on valid trials, paired within blocks.

    Claims that :func:`not_asked` names are left out. Who answers a run evaluates it once and hands
    the findings on.
    """
    noise = noise_flags(run)
    contrasts = [contrast for contrast in run.record.contrasts if _is_asked(run, contrast)]
    trials = {name: trials_with(run, name) for name in {item.response for item in contrasts}}
    findings = [_finding(run, contrast, trials[contrast.response]) for contrast in contrasts]
    is_steady = block_trend(run) is None
    judged = [
        _of_one_start(run, replace(_judged(_counted(run, one), claim_p, is_steady), noise=noise))
        for one, claim_p in zip(findings, _corrected(findings), strict=True)
    ]
    return list(map(_on_busy_machine, judged)) if is_loaded(run) else judged


def _on_busy_machine(finding: Finding) -> Finding:
    if finding.decision is None:
        return finding
    decision, verdict = of_busy_machine(finding.decision), finding.verdict
    if verdict.reason == finding.decision.text:
        verdict = replace(verdict, reason=decision.text)
    return replace(finding, decision=decision, verdict=verdict)


def _corrected(findings: Sequence[Finding]) -> list[Corrected]:
    """Return the p-values of claims with the adjusted ones: over a first line, or a response."""
    contrasts = [finding.contrast for finding in findings]
    p_values = [_tested_p(finding) for finding in findings]
    if are_of_a_duel(contrasts):
        return corrected_over_first_line(contrasts, p_values)
    return corrected(p_values, [contrast.family for contrast in contrasts])


def _tested_p(finding: Finding) -> float:
    """Return the p-value of a claim that is tested; NaN for others."""
    effect = finding.effect
    if effect is None or effect.n < SMALLEST_N or finding.contrast.set_by_load:
        return math.nan
    return effect.p_value


def _judged(finding: Finding, claim_p: Corrected, is_steady: bool) -> Finding:
    """Add verdict and decision, allowing for the run's other claims about the response."""
    finding_with_p = replace(finding, p_adjusted=claim_p.adjusted, claims=claim_p.claims)
    if finding.effect is None:
        return finding_with_p
    effect, contrast = finding.effect, finding.contrast
    known = claim_p if math.isfinite(claim_p.adjusted) else None
    decision = _decision(finding_with_p, known)
    if not is_published(contrast):
        verdict = compared(effect, contrast, finding.response, decision, claim_p.adjusted)
    elif finding.is_complete and not contrast.set_by_load:
        verdict = Verdict(AgainstStudy.NOT_TESTABLE, COMPLETE, "set by the load")
    else:
        verdict = judge(effect, contrast, known)
    scope = scope_of(effect, contrast, verdict, decision, finding.drifts, known, is_steady)
    return replace(finding_with_p, verdict=verdict, decision=decision, scope=scope)


def _of_one_start(run: Run, finding: Finding) -> Finding:
    """Add to the scope that an interval is that of one start of the services, if it is."""
    names = {name for levels in sides_of(finding.contrast) for name in run.record.selected(levels)}
    if finding.effect is None or finding.effect.n < 2 or not has_one_start(run, names):
        return finding
    return replace(finding, scope="; ".join(filter(None, [finding.scope, ONE_START])))


def not_asked(run: Run) -> str:
    """Return in one line the claims that were not asked of a run; empty if there are none.

    These claims need treatments that the run does not have, and this machine could not have tested
    them.
    """
    reasons: dict[str, dict[str, None]] = {}
    for contrast in run.record.contrasts:
        if not _is_asked(run, contrast):
            claims = reasons.setdefault(contrast.not_testable, {})
            claims[without_percentile(contrast.claim)] = None
    parts = [f"{'; '.join(claims)} ({reason})" for reason, claims in reasons.items()]
    return f"Not asked: {'; '.join(parts)}." if parts else ""


def _is_asked(run: Run, contrast: Contrast) -> bool:
    return not contrast.not_testable or all(
        run.record.selected(levels) for levels in sides_of(contrast)
    )


def _counted(run: Run, finding: Finding) -> Finding:
    """Add the numbers of trials and valid trials of a contrast, and why numbers are absent."""
    names = {name for levels in sides_of(finding.contrast) for name in run.record.selected(levels)}
    with_counts = with_trials(finding, run, names)
    complete = finding.effect is not None and not finding.left_out
    if complete or finding.absent or finding.contrast.not_testable:
        return with_counts
    return replace(with_counts, absent=why_absent(run, names, finding.response))


def with_trials(finding: Finding, run: Run, names: Collection[str]) -> Finding:
    """Return a finding with the numbers of trials of the treatments ``names``."""
    trials = run.current_trials()
    chosen = trials[trials["treatment"].isin(names)]
    return replace(finding, valid=int((chosen["state"] == "valid").sum()), trials=len(chosen))


def _finding(run: Run, contrast: Contrast, trials: pd.DataFrame) -> Finding:
    response = response_of(run.record, contrast.response)
    if why := _unseen_on(run, contrast):
        return Finding(contrast, response, None, without_effect(contrast, why), absent=why)
    if contrast.not_testable:
        return Finding(contrast, response, None, without_effect(contrast, ""))
    try:
        ends, if_alike = ends_of(run, contrast, trials)
        refuse_unlike(run, contrast, trials)
        ends, growth = after_equal_requests(run, contrast, trials, ends)
        effect = _effect_within(run, contrast, trials, ends)
    except AnalysisError as error:
        is_open = isinstance(error, NothingLimits)
        way_out = f"; {way_out_of_bound(run, contrast, trials)}" * is_open
        verdict = without_effect(contrast, f"{error}{way_out}")
        return Finding(contrast, response, None, verdict)
    by_block = ends.measured[ends.low.notna()]
    return Finding(
        contrast,
        response,
        effect,
        NOT_YET,
        blocks=tuple(int(block) for block in by_block.index),
        left_out=len(ends.low) - len(by_block),
        drifts=_drifts(run, contrast, trials, by_block.index) if ends.limited else (),
        if_alike=effect_of_run(run, if_alike, contrast.scale) if if_alike else None,
        refused=refused_trials(run, contrast, trials, effect, partial(_effect, run, contrast)),
        way_out=way_out_of_bound(run, contrast, trials) if effect.bound else "",
        growth=growth,
        is_complete=is_share(response) and _is_complete(run, contrast, trials),
    )


def _is_complete(run: Run, contrast: Contrast, trials: pd.DataFrame) -> bool:
    """Return whether both sides of a contrast have the whole in all of their valid trials."""
    names = [name for levels in sides_of(contrast) for name in run.record.selected(levels)]
    is_of_sides = trials["treatment"].isin(names) & (trials["state"] == "valid")
    shares = trials.loc[is_of_sides, contrast.response].dropna()
    return contrast.scale != "level" and len(shares) > 0 and bool((shares == 1).all())


def _effect(run: Run, contrast: Contrast, trials: pd.DataFrame) -> Effect:
    """Return the effect of a contrast in some trials."""
    ends, _ = after_equal_requests(run, contrast, trials, ends_of(run, contrast, trials)[0])
    return _effect_within(run, contrast, trials, ends)


def _effect_within(run: Run, contrast: Contrast, trials: pd.DataFrame, ends: Ends) -> Effect:
    if not has_counts(contrast, trials):
        effect = effect_of_run(run, ends, contrast.scale)
        return effect if contrast.limit is None else against_limit(effect, contrast)
    sides = (contrast.numerator, contrast.denominator)
    new, old = (counts_of(run, side, trials, contrast.response) for side in sides)
    if (starts := starts_of(run)) is None:
        return difference_of_shares(new, old, run.record.until_decided)
    whole = new.notna().all(axis=1) & old.notna().all(axis=1)
    new, old = (counts[whole].groupby(starts[whole]).sum() for counts in (new, old))
    return replace(difference_of_shares(new, old), of_blocks=int(whole.sum()))


def _unseen_on(run: Run, contrast: Contrast) -> str:
    """Return why a contrast has no number: answers under load that nothing has checked."""
    strange = unseen_answers(run)
    names = {name for levels in sides_of(contrast) for name in run.record.selected(levels)}
    sides = [item for item in run.record.treatments if item.name in names & {*strange}]
    whose = " and ".join("/".join(item.levels.values()) for item in sides)
    return f"the answers of {whose} under load are not those that were checked" if sides else ""


def _drifts(
    run: Run, contrast: Contrast, trials: pd.DataFrame, blocks: pd.Index[Any]
) -> tuple[float, ...]:
    """Return the change of the log ratio to the end of the load; empty if one is unknown.

    There is one for each block, or for each start where blocks share one.

    A log ratio is a difference of logs, so its drift is the difference of both sides' drifts.
    """
    column = drift_column(contrast.response)
    if contrast.scale != "ratio" or column not in trials:
        return ()
    as_difference = contrast.model_copy(update={"response": column, "scale": "difference"})
    drifts = ends_of(run, as_difference, trials)[0].low.reindex(blocks)
    if (starts := starts_of(run)) is not None:
        drifts = Ends(drifts, drifts).mean_by(starts).low
    return () if drifts.isna().any() else tuple(map(float, drifts))


def _decision(finding: Finding, among: Corrected | None) -> Decision | None:
    """Return the decision on a ratio; None for a difference, whose margin would have no unit.

    None also with too few blocks for a verdict, and for a claim with a limit.
    """
    effect, contrast = finding.effect, finding.contrast
    has_margin = contrast.scale == "ratio" and contrast.limit is None and not contrast.set_by_load
    if effect is None or not has_margin or effect.n < SMALLEST_N:
        return None
    return decide(effect, among, finding.way_out)
