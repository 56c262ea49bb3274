"""Claim 3 by a rule.

Does a threshold of failures make single runs comparable? The study compares one run of each
version, and takes a difference of 13% for a difference of the versions. Single runs of the same
proxy are comparable if they seldom differ by as much: the claim holds if at most 5% of pairs of
single runs lie beyond the published ratio (305 users over 270). The result is the other way if the
whole 95% interval of that share lies above 5%, as claimed if it lies below, and not decided
otherwise. The rule was fixed before the first measurement.
"""

from __future__ import annotations

import math
from dataclasses import replace

from perflab.analysis.evaluation import Finding, with_trials
from perflab.analysis.noise import noise_flags
from perflab.analysis.rules import Rule
from perflab.analysis.verdict import judge, without_effect
from perflab.recordings import Contrast, Response, Run, published_value, stated
from perflab.statistics.comparison import Effect
from perflab.statistics.in_words import as_share, counted
from perflab.statistics.two_samples import Apart, apart
from perflab.systems.llm.rungs import RESULTS, STUDY, USERS

CLAIM = "claim 3"
MOST_BEYOND = 0.05
# A proxy with enough descriptors never meets the threshold.
FILES, ENOUGH = "max_files", "enough"
SHARE = Response(
    name="pairs_beyond_share", title="share of pairs of single runs beyond the published ratio",
    noun="pairs of single runs",
)  # fmt: skip
CONTRAST = Contrast(
    name=CLAIM, claim=stated(STUDY, CLAIM), response=SHARE.name,
    scale="level", numerator={}, denominator={}, published_direction="smaller", limit=MOST_BEYOND,
    source=f"{STUDY} study, {CLAIM}",
)  # fmt: skip


def runs_apart(run: Run) -> Apart:
    """Return how far valid trials of one version under one limit lie apart, as single runs."""
    new, old = (
        published_value(STUDY, RESULTS, name, "users_at_failure") for name in ("new", "old")
    )
    trials = run.valid_trials()
    if USERS not in trials:
        return apart([], new / old)
    limited = trials[trials[f"factor_{FILES}"] != ENOUGH].groupby("treatment")
    return apart([group[USERS].astype(float).tolist() for _, group in limited], new / old)


def judged_claims(run: Run) -> list[Finding]:
    """Return the finding on claim 3 by the rule of this module."""
    distances = runs_apart(run)
    interval = (distances.share, distances.low, distances.high, 0.95, distances.n)
    effect = Effect(*interval, p_value=math.nan)
    is_known = math.isfinite(distances.share)
    verdict = judge(effect, CONTRAST) if is_known else without_effect(CONTRAST, "")
    finding = Finding(
        CONTRAST,
        SHARE,
        effect if is_known else None,
        replace(verdict, reason=in_words(distances)),
        noise=noise_flags(run),
    )
    treatments = run.record.treatments
    names = [item.name for item in treatments if item.levels.get(FILES, ENOUGH) != ENOUGH]
    return [with_trials(finding, run, names)]


def in_words(compared: Apart) -> str:
    """Return the share of pairs in words, or why there is none."""
    if compared.unreached:
        return (
            f"{compared.unreached} of {counted(compared.n + compared.unreached, 'run')} held all"
            " users until the ramp's end: how far runs lie apart is not known; let more users join"
            " (stress_users)"
        )
    runs = f"{counted(compared.n, 'run')} of {counted(compared.kinds, 'kind')}"
    if not math.isfinite(compared.share):
        return f"{runs}: too few to know how far they lie apart"
    return (
        f"two single runs of one proxy differ by more than {compared.ratio - 1:.0%} in"
        f" {as_share(compared.share, 1)}"
        f" [{as_share(compared.low, 1)}, {as_share(compared.high, 1)}] of pairs (the rule:"
        f" {MOST_BEYOND:.0%} at most; {runs}, {compared.beyond} of"
        f" {counted(compared.pairs, 'pair')} seen)"
    )


def has_limits(run: Run) -> bool:
    """Return whether proxies of a run have fewer descriptors than they may need."""
    return bool(set(run.record.factors.get(FILES, ())) - {ENOUGH})


RULES = (Rule((CLAIM,), has_limits, judged_claims),)
