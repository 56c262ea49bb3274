"""From a run to its findings: every contrast measured and judged, with what it rests on.

What a single run of A, then of B, would have shown: the way most studies measure.

From the scatter of a contrast over this machine's blocks. A block is such a run: one trial of
each side, some other trials and some drift between them. What a further block would show follows
Student's t around the mean of the n blocks, with n - 1 degrees of freedom and the scale
s sqrt(1 + 1/n) (the predictive distribution of a normal sample). Blocks have a random order; a run
that always takes A first adds a drift of the machine to the effect, which is not in here. Where a
side is several treatments, or the effect an interaction, it is a single run of each of them.

Source: G. J. Hahn, W. Q. Meeker, Statistical Intervals, 1991, section 4.7 (a further value of a
normal sample).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from perflab.analysis.covariate import adjustment, priced
from perflab.analysis.decision import Decision, decide, decide_bound
from perflab.analysis.noise import noise_flags
from perflab.analysis.validity import why_absent
from perflab.analysis.verdict import SMALLEST_N, Outcome, Verdict, judge, published_sign, zone_of
from perflab.errors import AnalysisError
from perflab.recordings import Contrast, ContrastPair, Response, Run, RunRecord, Scale, response_of
from perflab.recordings.responses import at_least_column
from perflab.statistics.bounds import Ends, bounded, mean_of
from perflab.statistics.comparison import Effect, effect_of
from perflab.statistics.families import Corrected, corrected


@dataclass(frozen=True)
class Replication:
    """The chance that a single run shows the published sign, and a size within its zone.

    NaN where none was published.
    """

    sign: float
    size: float

    def text(self) -> str:
        """Return ``sign 97%, size 45%``; empty where there is nothing to show."""
        parts = {"sign": self.sign, "size": self.size}
        return ", ".join(f"{name} {_share(p)}" for name, p in parts.items() if math.isfinite(p))


def single_run(by_block: Sequence[float], contrast: Contrast) -> Replication | None:
    """Return what a single A-then-B run would show; None below 3 blocks.

    ``by_block`` are the log ratios of the blocks, or their differences, corrected for nothing: a
    single run is corrected for nothing either.
    """
    x = np.asarray(by_block, dtype=float)
    if len(x) < SMALLEST_N:
        return None
    sign, zone = published_sign(contrast), zone_of(contrast)
    return Replication(
        _chance(x, 0.0, math.inf) if sign > 0 else _chance(x, -math.inf, 0.0) if sign else math.nan,
        _chance(x, zone.low, zone.high) if zone else math.nan,
    )


def _chance(x: np.ndarray, low: float, high: float) -> float:
    """Return the probability that a further value lies between two ends."""
    from scipy import special

    mean, scale = float(x.mean()), float(x.std(ddof=1)) * math.sqrt(1 + 1 / len(x))
    if not scale > 0:
        return float(low < mean < high)
    ends = (np.array([low, high]) - mean) / scale
    # The lower tail of Student's t: scipy.stats.t.cdf takes ten times as long for two numbers.
    below, above = special.stdtr(len(x) - 1, ends)
    return float(above - below)


def _share(p: float) -> str:
    """Return a probability as whole percent, never as certain."""
    return "> 99%" if p > 0.99 else "< 1%" if p < 0.01 else f"{p:.0%}"


# What claims of one step end in, such as "(p90)": where they are named together, once is enough.
PERCENTILE = re.compile(r" \(p\d+\b[^()]*\)$")
# Measured before every load; a response is corrected for it where that is shown to help. A probe
# after the load answers to the treatment.
COVARIATE = "cpu_probe_before_ms"


@dataclass(frozen=True)
class Finding:
    """A contrast of a run with its effect (None: there is none), decision, verdict and warnings.

    ``response`` is the declaration of what the contrast compares.
    ``p_adjusted`` is corrected over the ``claims`` of the run that are tested
    (:mod:`~perflab.statistics.families`; what the load itself sets is not among them: an effect
    that cannot fail would make it easier for the others). Verdict and decision go by it.
    ``replication`` is what a single A-then-B run would show (None: not known). ``blocks`` are the
    numbers of those compared, ``left_out`` counts those that lack a side. ``valid`` of the
    ``trials`` that were made of its treatments may be used; ``noise`` are the flags of the run's
    noise report in a few words each (:func:`~perflab.analysis.noise.noise_flags`).
    ``absent`` says why there is no number, or none from the blocks that were left out.
    ``limit`` are the words for what a rule of a system's own holds a claim to; empty elsewhere.
    """

    contrast: Contrast
    response: Response
    effect: Effect | None
    verdict: Verdict
    decision: Decision | None = None
    replication: Replication | None = None
    blocks: tuple[int, ...] = ()
    left_out: int = 0
    p_adjusted: float = math.nan
    claims: int = 0
    valid: int = 0
    trials: int = 0
    noise: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    absent: str = ""
    limit: str = ""


# A run is a snapshot: what it shows is worked out once, for all who ask.
_FOUND: WeakKeyDictionary[Run, tuple[RunRecord, list[Finding]]] = WeakKeyDictionary()


def evaluate(run: Run) -> list[Finding]:
    """Measure and judge every contrast of a run, on valid trials, paired within blocks.

    What :func:`not_asked` names is left out. Whoever asks again of the same run and record gets
    the same findings; a run that is opened again is judged again.
    """
    record, found = _FOUND.get(run, (None, []))
    if record is not run.record:
        found = _evaluated(run)
        _FOUND[run] = run.record, found
    return [*found]


def _evaluated(run: Run) -> list[Finding]:
    trials, noise = run.valid_trials(), noise_flags(run)
    asked = [contrast for contrast in run.record.contrasts if _is_asked(run, contrast)]
    findings = [_finding(run, contrast, trials) for contrast in asked]
    families = [finding.contrast.response for finding in findings]
    p_values = corrected([_tested_p(finding) for finding in findings], families)
    return [
        replace(_judged(_counted(run, finding), own), noise=noise)
        for finding, own in zip(findings, p_values, strict=True)
    ]


def _tested_p(finding: Finding) -> float:
    """Return the p-value of a claim that is tested; NaN of any other."""
    effect = finding.effect
    if effect is None or effect.n < SMALLEST_N or finding.contrast.set_by_load:
        return math.nan
    return effect.p_value


def _judged(finding: Finding, own: Corrected) -> Finding:
    """Add what the effect comes to beside the run's other claims about its response."""
    found = replace(finding, p_adjusted=own.adjusted, claims=own.claims)
    if finding.effect is None:
        return found
    among = own if math.isfinite(own.adjusted) else None
    return replace(
        found,
        verdict=judge(finding.effect, finding.contrast, among),
        decision=_decision(finding.effect, finding.contrast, among),
    )


def not_asked(run: Run) -> str:
    """Return in one line what was not asked of a run and could not be tested here; or nothing.

    These are claims of treatments that the run does not have and that this machine could not have
    tested in any case.
    """
    reasons: dict[str, dict[str, None]] = {}
    for contrast in run.record.contrasts:
        if not _is_asked(run, contrast):
            claims = reasons.setdefault(contrast.not_testable, {})
            claims[PERCENTILE.sub("", contrast.claim)] = None
    parts = [f"{'; '.join(claims)} ({reason})" for reason, claims in reasons.items()]
    return f"Not asked: {'; '.join(parts)}." if parts else ""


def _is_asked(run: Run, contrast: Contrast) -> bool:
    return not contrast.not_testable or all(
        run.record.selected(levels) for levels in _sides(contrast)
    )


def _sides(contrast: Contrast) -> list[dict[str, str]]:
    pairs = [contrast, contrast.interaction] if contrast.interaction else [contrast]
    return [levels for pair in pairs for levels in (pair.numerator, pair.denominator)]


def _counted(run: Run, finding: Finding) -> Finding:
    """Add how many trials of a contrast's treatments were made and are valid, and what lacks."""
    names = {name for levels in _sides(finding.contrast) for name in run.record.selected(levels)}
    found = with_trials(finding, run, names)
    whole = finding.effect is not None and not finding.left_out
    if whole or finding.contrast.not_testable:
        return found
    return replace(found, absent=why_absent(run, names, finding.response))


def with_trials(finding: Finding, run: Run, names: Collection[str]) -> Finding:
    """Return a finding that says how many trials it rests on.

    Parameters
    ----------
    names : collection of str
        The treatments whose trials it looks at.
    """
    trials = run.trials()
    own = trials[trials["treatment"].isin(names) & ~trials["superseded"].astype(bool)]
    return replace(finding, valid=int((own["state"] == "valid").sum()), trials=len(own))


def _finding(run: Run, contrast: Contrast, trials: pd.DataFrame) -> Finding:
    response = response_of(run.record, contrast.response)
    if contrast.not_testable:
        return Finding(contrast, response, None, judge(None, contrast))
    try:
        ends = _between(run, contrast, contrast.response, trials)
        if not ends.exact:
            return _bounded(run, contrast, response, ends)
        by_block, adjusted = _effects(run, contrast, trials, ends.low)
        effect = effect_of(by_block, scale=contrast.scale, rule=run.record.until_decided)
    except AnalysisError as error:
        verdict = Verdict(Outcome.UNDECIDED, str(error))
        if contrast.set_by_load:
            verdict = judge(None, contrast)
        return Finding(contrast, response, None, verdict, warnings=(str(error),))
    raw = ends.low if adjusted else by_block
    return Finding(
        contrast,
        response,
        effect,
        judge(effect, contrast),
        replication=_replication(raw, contrast),
        blocks=tuple(int(block) for block in by_block.dropna().index),
        left_out=int(by_block.isna().sum()),
        warnings=(*effect.warnings, *filter(None, [adjusted, _not_counted_yet(run)])),
    )


def _bounded(run: Run, contrast: Contrast, response: Response, ends: Ends) -> Finding:
    """Return the finding of a contrast of which only a bound is known; raises AnalysisError."""
    effect = bounded(ends, contrast.scale, run.record.until_decided)
    return Finding(
        contrast,
        response,
        effect,
        judge(effect, contrast),
        blocks=tuple(int(block) for block in ends.low.dropna().index),
        left_out=int(ends.low.isna().sum()),
        warnings=(*effect.warnings, *filter(None, [_not_counted_yet(run)])),
    )


def _not_counted_yet(run: Run) -> str:
    """Return which blocks count at the next look only, where blocks are added; or nothing."""
    rule, judged = run.record.until_decided, run.judged_blocks
    if rule is None or judged == run.blocks_so_far:
        return ""
    after = f"after block {judged}, the last that was looked at"
    return f"what was measured {after}, counts once there are {rule.next_look(judged)} blocks"


def _replication(by_block: pd.Series[Any], contrast: Contrast) -> Replication | None:
    if contrast.set_by_load:
        return None
    return single_run(by_block.dropna().tolist(), contrast)


def _decision(effect: Effect, contrast: Contrast, among: Corrected | None) -> Decision | None:
    """Decide where that can be: its margin is a share, and says nothing of differences.

    Below the fewest blocks of a verdict, what they need first is all there is to say.
    """
    if contrast.scale != "ratio" or contrast.set_by_load or effect.n < SMALLEST_N:
        return None
    if effect.bound:
        return decide_bound(
            effect.limit < 1 if effect.bound == "at most" else effect.limit > 1, among
        )
    return decide(effect.by_block, corrected=among, looked=effect.looked)


def _effects(
    run: Run, contrast: Contrast, trials: pd.DataFrame, raw: pd.Series[Any]
) -> tuple[pd.Series[Any], str]:
    """Return the log ratio or difference in every block, and what it was adjusted for."""
    effects = raw.copy()
    # A correction is chosen by the blocks so far: chosen anew at every look, it is no longer what
    # the random order alone makes as likely to be positive as negative.
    if contrast.scale == "difference" or run.record.until_decided:
        return effects, ""
    found = adjustment(trials, contrast.response, COVARIATE)
    if found.used:
        faster = _between(run, contrast, COVARIATE, trials).low
        effects[:] = priced(effects.to_numpy(), faster.to_numpy(), found, _weight(run, contrast))
    return effects, found.text()


def _weight(run: Run, contrast: Contrast) -> float:
    """Return the sum of the squared weights that a contrast gives to the trials of a block."""
    weights: Counter[str] = Counter()
    pairs = [(contrast, 1.0), *([(contrast.interaction, -1.0)] if contrast.interaction else [])]
    for pair, sign in pairs:
        for levels, side in ((pair.numerator, sign), (pair.denominator, -sign)):
            names = run.record.selected(levels)
            weights.update(dict.fromkeys(names, side / len(names)))
    return sum(weight**2 for weight in weights.values())


def _between(run: Run, contrast: Contrast, response: str, trials: pd.DataFrame) -> Ends:
    """Return a response's log ratio or difference in every block, NaN where a side is missing."""
    if response not in trials.columns and at_least_column(response) not in trials.columns:
        raise AnalysisError(f"the trials have no column '{response}'")

    def of(pair: ContrastPair) -> Ends:
        above, below = (
            _by_block(run, levels, response, trials, contrast.scale, side)
            for levels, side in ((pair.numerator, "numerator"), (pair.denominator, "denominator"))
        )
        return above.minus(below)

    found = of(contrast)
    return found.minus(of(contrast.interaction)) if contrast.interaction else found


def _by_block(
    run: Run, levels: dict[str, str], response: str, trials: pd.DataFrame, scale: Scale, side: str
) -> Ends:
    """Return the response per block, for ratios its log: the mean of all treatments selected.

    NaN in blocks that lack one of them.
    """
    names = run.record.selected(levels)
    if not names:
        wanted = ", ".join(f"{factor}={level}" for factor, level in levels.items())
        raise AnalysisError(f"no treatment of the run has {wanted}")
    parts = [_of_treatment(run, name, response, trials) for name in names]
    if scale == "ratio" and len(names) > 1 and any((each.low <= 0).any() for each in parts):
        raise AnalysisError(f"{response} is not positive in every trial; a ratio needs that")
    return mean_of([each.logs(side) if scale == "ratio" else each for each in parts])


def _of_treatment(run: Run, name: str, response: str, trials: pd.DataFrame) -> Ends:
    """Return a response per block between its ends: what was cut off has none above."""
    own = trials[trials["treatment"] == name].set_index("block")
    own = own.reindex(pd.RangeIndex(run.judged_blocks))
    nothing = pd.Series(np.nan, index=own.index)
    known = own.get(response, nothing).astype(float)
    at_least = own.get(at_least_column(response), nothing).astype(float)
    is_cut = known.isna() & at_least.notna()
    return Ends(known.where(~is_cut, at_least), known.where(~is_cut, np.inf))
