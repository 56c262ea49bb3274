"""Claim 3 by a rule: does a threshold of failures make single runs comparable?

The study compares one run of each version, and takes a difference of 13% for one of the versions.
Runs of one and the same proxy are then comparable where they seldom differ by as much: the claim
holds where at most 5% of pairs of single runs lie beyond the published ratio (305 users over 270).
It is not reproduced where the whole 95% interval of that share lies above 5%, reproduced where it
lies below, and undecided else. Fixed before anything was measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from perflab.analysis.methods.comparison import Effect
from perflab.analysis.methods.single_runs import Apart, apart
from perflab.analysis.treatments.evaluation import Finding, with_trials
from perflab.analysis.treatments.joint import JointClaim
from perflab.analysis.treatments.noise import noise_flags
from perflab.analysis.treatments.verdict import Outcome, Verdict, Way
from perflab.numerals import counted
from perflab.recordings import Contrast, Response, Run, published_value
from perflab.systems.llm.claims import USERS
from perflab.systems.llm.figures.versions import rungs_of
from perflab.systems.llm.preset import RESULTS, STUDY

CLAIM = "claim 3"
MOST_BEYOND = 0.05
# Who has enough descriptors never meets the threshold.
FILES, ENOUGH = "max_files", "enough"
SHARE = Response(
    name="pairs_beyond_share", title="share of pairs of single runs beyond the published ratio",
    noun="pairs of single runs",
)  # fmt: skip


def published_ratio() -> float:
    """Return users at failure, new over old, as published."""
    new = published_value(STUDY, RESULTS, "new", "users_at_failure")
    return new / published_value(STUDY, RESULTS, "old", "users_at_failure")


def runs_apart(run: Run) -> Apart:
    """Return how far valid trials of one version under one limit lie apart, as single runs."""
    trials = run.valid_trials()
    if USERS not in trials:
        return apart([], published_ratio())
    own = trials[trials[f"factor_{FILES}"] != ENOUGH].merge(rungs_of(run), on="treatment")
    groups = [each[USERS].astype(float).tolist() for _, each in own.groupby("treatment")]
    return apart(groups, published_ratio())


def judged_claims(run: Run) -> Mapping[str, JointClaim]:
    """Return the verdict on claim 3 by the rule of this module."""
    found = runs_apart(run)
    verdict = verdict_on(found)
    effect = None
    if math.isfinite(found.share):
        effect = Effect(
            found.share, found.low, found.high, 0.95, found.n, math.nan, "normal logs, chi-squared"
        )
    contrast = Contrast(
        name=CLAIM, claim="a threshold of failures makes runs comparable", response=SHARE.name,
        numerator={}, denominator={}, source=f"llm_proxy study, {CLAIM}",
    )  # fmt: skip
    finding = Finding(
        contrast, SHARE, effect, verdict, noise=noise_flags(run), limit=f"at most {MOST_BEYOND:g}"
    )
    levels = {item.name: item.levels.get(FILES, ENOUGH) for item in run.record.treatments}
    names = [name for name, files in levels.items() if files != ENOUGH]
    return {CLAIM: JointClaim((with_trials(finding, run, names),), verdict)}


def verdict_on(found: Apart) -> Verdict:
    """Apply the rule."""
    if not math.isfinite(found.share):
        return Verdict(Outcome.UNDECIDED, in_words(found))
    if found.low > MOST_BEYOND:
        return Verdict(Outcome.NOT_REPRODUCED, in_words(found), Way.OPPOSITE)
    if found.high <= MOST_BEYOND:
        return Verdict(Outcome.REPRODUCED, in_words(found), Way.SHOWN)
    return Verdict(Outcome.UNDECIDED, in_words(found), Way.NOT_SHOWN)


def in_words(found: Apart) -> str:
    """Return what was found, or why there is no share."""
    if found.unreached:
        return (
            f"{found.unreached} of {counted(found.n + found.unreached, 'run')} held all users"
            " until the ramp's end: how far runs lie apart is not known; let more users join"
            " (stress_users)"
        )
    runs = f"{counted(found.n, 'run')} of {counted(found.kinds, 'kind')}"
    if not math.isfinite(found.share):
        return f"{runs}: too few to know how far they lie apart"
    return (
        f"two single runs of one proxy differ by more than {found.ratio - 1:.0%} in"
        f" {found.share:.1%} [{found.low:.1%}, {found.high:.1%}] of pairs (the rule:"
        f" {MOST_BEYOND:.0%} at most; {runs}, {found.beyond} of"
        f" {counted(found.pairs, 'pair')} seen)"
    )
