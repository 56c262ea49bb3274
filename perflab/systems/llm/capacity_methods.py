"""Capacity by search beside capacity by failures: which version each method calls better.

Capacity by search is the most users that hold the objectives; by the published method it is the
users at which a number of failures ended a ramp. They are two estimands, so their numbers are not
compared, only the versions that they call better.

Claim 3 by a rule: does a threshold of failures make single runs comparable?

The study compares one run of each version, and takes a difference of 13% for a difference of the
versions. Single runs of the same proxy are then comparable if they seldom differ by as much: the
claim holds if at most 5% of pairs of single runs lie beyond the published ratio (305 users over
270). It is not reproduced if the whole 95% interval of that share lies above 5%, reproduced if it
lies below, and undecided otherwise. The rule was fixed before the first measurement.
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
    """A method of capacity: its words, the stem of its rungs' names, and its response.

    ``effect`` is the ratio of new over old by this method; None if no block has both versions.
    """

    words: str
    stem: str
    response: str
    effect: Effect | None

    @property
    def winner(self) -> str:
        """Return ``new``, ``old``, "not shown" (the interval includes 1), or "not known"."""
        if self.effect is None or self.effect.n < SMALLEST_N:
            return UNKNOWN
        if math.isnan(self.effect.low) and math.isnan(self.effect.high):
            return UNKNOWN
        if self.effect.low > 1:
            return "new"
        return "old" if self.effect.high < 1 else NOBODY

    @property
    def sentence(self) -> str:
        """Return the ratio with its interval and the winner."""
        if self.effect is None:
            return f"{self.words}: no block has both versions"
        ratio = f"new over old {number(self.effect.estimate)}"
        if math.isnan(self.effect.estimate):
            ratio = f"new over old {self.effect.bound} {number(self.effect.limit)}"
        between = f"[{number(self.effect.low)}, {number(self.effect.high)}]"
        interval = "no interval" if math.isnan(self.effect.low) else between
        return f"{self.words}: {ratio} {interval}, n = {self.effect.n}, winner {self.winner}"


def methods(run: Run) -> list[Method]:
    """Return the methods that a run has, search first, then stops by number of descriptors."""
    rungs = [treatment.levels["rung"] for treatment in run.record.treatments]
    limits = {int(rung.split("_")[1]) for rung in rungs if rung.startswith(f"{FEW_FILES}_")}
    words_and_response = {
        f"{FEW_FILES}_{limit}": (f"by failures, {limit} descriptors", USERS)
        for limit in sorted(limits)
    }
    if any(rung.startswith(f"{CAPACITY}_") for rung in rungs):
        words_and_response = {CAPACITY: ("by search", HELD), **words_and_response}
    effects = {
        (finding.contrast.numerator.get("rung"), finding.contrast.response): finding.effect
        for finding in evaluate(run)
        if finding.contrast.denominator.get("rung", "").endswith("_old")
    }
    return [
        Method(words, stem, response, effects.get((f"{stem}_new", response)))
        for stem, (words, response) in words_and_response.items()
    ]


def agreement(compared: list[Method]) -> str:
    """Say whether search and every stop by failures name the same winner.

    Methods that show no winner do not agree: the difference may be too small for them.
    """
    if len({method.stem == CAPACITY for method in compared}) < 2:
        return "only one method was measured (sets=capacity,limits has both)"
    winners = {method.winner for method in compared}
    if UNKNOWN in winners:
        return "whether they name the same winner is not known"
    shown = winners - {NOBODY}
    if not shown:
        return "no method shows a winner"
    if len(shown) > 1:
        return "the methods name different winners"
    if NOBODY not in winners:
        return f"both methods name the same winner: {compared[0].winner}"
    showing = " and ".join(method.words for method in compared if method.winner != NOBODY)
    not_showing = " or ".join(method.words for method in compared if method.winner == NOBODY)
    return f"{shown.pop()} is the winner {showing}; no winner is shown {not_showing}"


CLAIM = "claim 3"
MOST_BEYOND = 0.05
# A proxy with enough descriptors never meets the threshold.
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
    limited = trials[trials[f"factor_{FILES}"] != ENOUGH].merge(rungs_of(run), on="treatment")
    groups = [group[USERS].astype(float).tolist() for _, group in limited.groupby("treatment")]
    return apart(groups, published_ratio())


def judged_claims(run: Run) -> Mapping[str, JointClaim]:
    """Return the verdict on claim 3 by the rule of this module."""
    distances = runs_apart(run)
    verdict = verdict_on(distances)
    effect = None
    if math.isfinite(distances.share):
        effect = Effect(
            distances.share,
            distances.low,
            distances.high,
            0.95,
            distances.n,
            math.nan,
            "normal logs, chi-squared",
        )
    contrast = Contrast(
        name=CLAIM, claim="a threshold of failures makes runs comparable", response=SHARE.name,
        numerator={}, denominator={}, source=f"llm_proxy study, {CLAIM}",
    )  # fmt: skip
    finding = Finding(
        contrast, SHARE, effect, verdict, noise=noise_flags(run), limit=f"at most {MOST_BEYOND:g}"
    )
    levels = {
        treatment.name: treatment.levels.get(FILES, ENOUGH) for treatment in run.record.treatments
    }
    names = [name for name, files in levels.items() if files != ENOUGH]
    return {CLAIM: JointClaim((with_trials(finding, run, names),), verdict)}


def verdict_on(distances: Apart) -> Verdict:
    """Return the verdict of the rule on the distances of single runs."""
    if not math.isfinite(distances.share):
        return Verdict(Outcome.UNDECIDED, in_words(distances))
    if distances.low > MOST_BEYOND:
        return Verdict(Outcome.NOT_REPRODUCED, in_words(distances), Way.OPPOSITE)
    if distances.high <= MOST_BEYOND:
        return Verdict(Outcome.REPRODUCED, in_words(distances), Way.SHOWN)
    return Verdict(Outcome.UNDECIDED, in_words(distances), Way.NOT_SHOWN)


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
        f" {compared.share:.1%} [{compared.low:.1%}, {compared.high:.1%}] of pairs (the rule:"
        f" {MOST_BEYOND:.0%} at most; {runs}, {compared.beyond} of"
        f" {counted(compared.pairs, 'pair')} seen)"
    )
