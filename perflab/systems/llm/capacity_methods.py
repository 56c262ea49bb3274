"""Capacity by search beside capacity by crash: what each method says, and of whom.

By search it is the most users that hold the objectives; by the published method the users at which
a number of failures ended a ramp. They are two estimands, and no number of one is held against a
number of the other: what can be compared is whom each calls the better version.

Claim 3 by a rule: does a threshold of failures make single runs comparable?

The study compares one run of each version, and takes a difference of 13% for one of the versions.
Runs of one and the same proxy are then comparable where they seldom differ by as much: the claim
holds where at most 5% of pairs of single runs lie beyond the published ratio (305 users over 270).
It is not reproduced where the whole 95% interval of that share lies above 5%, reproduced where it
lies below, and undecided else. Fixed before anything was measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from perflab.analysis.evaluation import Finding, evaluate, with_trials
from perflab.analysis.findings import JointClaim
from perflab.analysis.noise import noise_flags
from perflab.analysis.verdict import SMALLEST_N, Outcome, Verdict, Way
from perflab.recordings import Contrast, Response, Run, published_value
from perflab.statistics.comparison import Effect
from perflab.statistics.in_words import counted, number
from perflab.statistics.single_runs import Apart, apart
from perflab.systems.llm.claims import HELD, USERS
from perflab.systems.llm.figures.costs import rungs_of
from perflab.systems.llm.rungs import CAPACITY, FEW_FILES, RESULTS, STUDY

NOBODY, UNKNOWN = "not shown", "not known"


@dataclass(frozen=True)
class Method:
    """A way to a capacity: its words, the stem of its rungs' names, and its response.

    ``effect`` is the ratio of new over old by this method; None where no block has both versions.
    """

    words: str
    stem: str
    response: str
    effect: Effect | None

    @property
    def winner(self) -> str:
        """Return ``new``, ``old``, not shown (the interval includes 1), or that it is not known."""
        if self.effect is None or self.effect.n < SMALLEST_N:
            return UNKNOWN
        if math.isnan(self.effect.low) and math.isnan(self.effect.high):
            return UNKNOWN
        if self.effect.low > 1:
            return "new"
        return "old" if self.effect.high < 1 else NOBODY

    @property
    def said(self) -> str:
        """Return the ratio with its interval and the winner."""
        if self.effect is None:
            return f"{self.words}: no block has both versions"
        ratio = f"new over old {number(self.effect.estimate)}"
        if math.isnan(self.effect.estimate):
            ratio = f"new over old {self.effect.bound} {number(self.effect.limit)}"
        between = f"[{number(self.effect.low)}, {number(self.effect.high)}]"
        told = "no interval" if math.isnan(self.effect.low) else between
        return f"{self.words}: {ratio} {told}, n = {self.effect.n}, winner {self.winner}"


def methods(run: Run) -> list[Method]:
    """Return the methods that a run has, search first, then stops by number of descriptors."""
    rungs = [item.levels["rung"] for item in run.record.treatments]
    limits = {int(rung.split("_")[1]) for rung in rungs if rung.startswith(f"{FEW_FILES}_")}
    ways = {
        f"{FEW_FILES}_{limit}": (f"by failures, {limit} descriptors", USERS)
        for limit in sorted(limits)
    }
    if any(rung.startswith(f"{CAPACITY}_") for rung in rungs):
        ways = {CAPACITY: ("by search", HELD), **ways}
    effects = {
        (each.contrast.numerator.get("rung"), each.contrast.response): each.effect
        for each in evaluate(run)
        if each.contrast.denominator.get("rung", "").endswith("_old")
    }
    return [
        Method(words, stem, response, effects.get((f"{stem}_new", response)))
        for stem, (words, response) in ways.items()
    ]


def agreement(found: list[Method]) -> str:
    """Say whether search and every stop by failures name the same winner.

    Methods that show no winner do not agree on anything: a difference may be too small for them.
    """
    if len({each.stem == CAPACITY for each in found}) < 2:
        return "only one method was measured (sets=capacity,limits has both)"
    winners = {each.winner for each in found}
    if UNKNOWN in winners:
        return "whether they name the same winner is not known"
    named = winners - {NOBODY}
    if not named:
        return "no method shows a winner"
    if len(named) > 1:
        return "the methods name different winners"
    if NOBODY not in winners:
        return f"both methods name the same winner: {found[0].winner}"
    by = " and ".join(each.words for each in found if each.winner != NOBODY)
    not_by = " or ".join(each.words for each in found if each.winner == NOBODY)
    return f"{named.pop()} is the winner {by}; no winner is shown {not_by}"


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
