"""The questions of a run, each answered in one sentence, beside what its study says.

A question is asked by the contrasts that name it (:attr:`Contrast.asks`); these are its primary
responses, and were named before the run. A claim is answered in the same words; claims that differ
in the percentile alone share an answer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from perflab.analysis.decision import MARGIN, Kind
from perflab.analysis.evaluation import PERCENTILE, Finding, evaluate, without_percentile
from perflab.analysis.noise import doubt
from perflab.analysis.verdict import Outcome, Size, Way
from perflab.recordings import Contrast, Run
from perflab.statistics.comparison import Effect
from perflab.statistics.in_words import number, to_safe_side

YES, NO, OPPOSITE = "yes", "no", "no, the other way"
NOT_DECIDED, NOT_MEASURED = "not decided", "not measured"
# The answer where a size is claimed without a direction, or nothing is published.
BY_SIZE = {Size.AGREES: YES, Size.CONTRADICTED: NO, Size.UNDECIDED: NOT_DECIDED}
BY_DECISION = {
    Kind.DIFFERENT: "different",
    Kind.EQUIVALENT: f"no difference larger than {MARGIN:.0%}",
    Kind.UNDECIDED: NOT_DECIDED,
}
AS_STUDIED = {
    Size.AGREES: "as here",
    Size.UNDECIDED: "not yet known whether as much here",
}
ONLY_A_BOUND = "only a bound is known, without a value yet"
# From this ratio on an effect is told in times, below it in percent.
# An interval that reaches so far is told in times, too: a thousand percent says nothing.
IN_TIMES, ENDS_IN_TIMES = 2.0, 5.0
# A difference is none beside the published one if its interval lies within this share of that.
BESIDE_PUBLISHED = 0.1


@dataclass(frozen=True)
class Answer:
    """A question with its answer and, in a few words, what the study says (empty: nothing).

    A fresh run of so many ``blocks`` would decide what is not decided, if the effect is the one
    seen (0: it is decided, more blocks do not help, or no number is known). ``doubt`` says why the
    answer may not hold elsewhere (empty: no reason).
    """

    question: str
    text: str
    study: str
    blocks: int
    findings: tuple[Finding, ...]
    doubt: str = ""


def answers_of(run: Run) -> list[Answer]:
    """Return the answers to a run's questions, in the order of its contrasts."""
    asked: dict[str, list[Finding]] = {}
    for finding in evaluate(run):
        if finding.contrast.asks:
            asked.setdefault(finding.contrast.asks, []).append(finding)
    why = doubt(run) if asked else ""
    return [replace(answer_to(*answered), doubt=why) for answered in asked.items()]


def answers_to_claims(findings: Sequence[Finding]) -> list[Answer]:
    """Return an answer to each claim, in the order of the findings."""
    claims: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        contrast = finding.contrast
        sides = f"{contrast.numerator} {contrast.denominator} {contrast.interaction}"
        claims.setdefault((without_percentile(contrast.claim), sides), []).append(finding)
    rows = Counter(claim for claim, _ in claims)
    return [
        answer_to(claim if rows[claim] == 1 else answered[0].contrast.claim, answered)
        for (claim, _), answered in claims.items()
    ]


def answer_to(question: str, findings: Sequence[Finding]) -> Answer:
    """Return the answer to a question; to a claim it says in the same words whether it holds."""
    by_word: dict[str, list[Finding]] = {}
    for finding in findings:
        by_word.setdefault(_word(finding), []).append(finding)
    text = "; ".join(_told(word, answered) for word, answered in by_word.items())
    refused = dict.fromkeys(filter(None, map(refused_words, findings)))
    text = "; ".join([text, *list(refused)[:1]])
    blocks = max(map(_blocks_needed, by_word.get(NOT_DECIDED, [])), default=0)
    return Answer(question, text, _study(findings), blocks, tuple(findings))


def _blocks_needed(finding: Finding) -> int:
    return max(0, finding.decision.blocks[1]) if finding.decision else 0


def _told(word: str, findings: Sequence[Finding]) -> str:
    """Return a word with the effects to which it applies."""
    numbers = ", ".join(dict.fromkeys(filter(None, map(_effect_words, findings))))
    effects = [finding.effect for finding in findings if finding.effect]
    if word != NOT_DECIDED or not effects:
        return ": ".join(filter(None, [word, numbers]))
    fewest, most = (choose(effects, key=lambda effect: effect.n) for choose in (min, max))
    if not any(finding.blocks for finding in findings):
        # Such a rule counts trials, not blocks.
        return f"{word}: {numbers}, n = {most.n}"
    least = f"{fewest.n} to " if fewest.n < most.n else ""
    return f"{word}: {numbers} in {least}{most.n_words}"


def _word(finding: Finding) -> str:
    """Return the answer in a word; the question asks for what the study says.

    It is empty for a difference without a published value: there is nothing to decide.
    """
    verdict, decision = finding.verdict, finding.decision
    if verdict.outcome in (Outcome.NOT_TESTABLE, Outcome.SET_BY_LOAD):
        return str(verdict)
    if finding.effect is None:
        return NOT_MEASURED
    if verdict.direction is Way.SHOWN:
        return YES
    if verdict.direction is Way.OPPOSITE:
        return OPPOSITE
    if verdict.direction is None and verdict.size is not None:
        return BY_SIZE[verdict.size]
    if verdict.outcome is Outcome.UNPUBLISHED:
        return BY_DECISION[decision.kind] if decision else ""
    if decision and decision.kind is Kind.EQUIVALENT:
        return NO
    is_judged = verdict.direction is Way.NOT_SHOWN
    is_no = is_judged and _is_nothing_beside_published(finding.contrast, finding.effect)
    return NO if is_no else NOT_DECIDED


def _is_nothing_beside_published(contrast: Contrast, effect: Effect) -> bool:
    if effect.bound or contrast.published_bound:
        return False
    size = abs(contrast.published_difference or 0.0) * BESIDE_PUBLISHED
    return max(abs(effect.low), abs(effect.high)) < size


def _effect_words(finding: Finding) -> str:
    """Return the effect with its interval and what it is of, or why there is none."""
    effect, contrast = finding.effect, finding.contrast
    percentile = PERCENTILE.search(contrast.claim)
    subject = contrast.subject or (percentile[1] if percentile else "")
    if finding.verdict.outcome in (Outcome.NOT_TESTABLE, Outcome.SET_BY_LOAD):
        return finding.verdict.reason
    if effect is None:
        return finding.absent.partition("; ")[0] or finding.verdict.reason
    if finding.limit:
        words = f"{difference_words(effect, '').removeprefix('+')} (the rule: {finding.limit})"
    elif contrast.scale == "ratio":
        words = ratio_words(effect)
    else:
        words = difference_words(effect, finding.response.unit)
    return f"{words} {subject}".rstrip()


def refused_words(finding: Finding) -> str:
    """Return the refused trials of which one side has more, and the effect with them; or nothing.

    The effect stands beside the one of the valid trials, which it may contradict.
    """
    refused = finding.refused
    if refused is None:
        return ""
    if refused.effect is None:
        return f"{refused.text}, without a value of this"
    is_ratio = finding.contrast.scale == "ratio"
    words = (
        ratio_words(refused.effect)
        if is_ratio
        else difference_words(refused.effect, finding.response.unit)
    )
    but = f" ({refused.without} have none)" if refused.without else ""
    return f"{refused.text}; with their values{but} {words}"


def ratio_words(effect: Effect) -> str:
    """Return a ratio as a change in percent with its interval, or in times if it is large."""
    if effect.bound:
        is_known = math.isfinite(effect.limit)
        return bound_words(effect.bound, effect.limit) if is_known else ONLY_A_BOUND
    if not math.isfinite(effect.low):
        return change(effect.estimate)
    if effect.estimate >= IN_TIMES or effect.high >= ENDS_IN_TIMES:
        return f"{number(effect.estimate)}x [{number(effect.low)}, {number(effect.high)}]"
    low, high = (percent(100 * (end - 1)) for end in (effect.low, effect.high))
    return f"{change(effect.estimate)} [{low}, {high}]"


def bound_words(bound: str, limit: float) -> str:
    """Return how far a ratio lies from 1 at least, or at most, rounded to the safe side."""
    if limit >= IN_TIMES:
        return f"{bound} {number(to_safe_side(limit, bound))}x"
    is_less, size = limit < 1, round(100 * abs(limit - 1), 6)
    is_least = (bound == "at most") == is_less
    digits = 10 ** (size < 9.95)
    size = (math.floor if is_least else math.ceil)(size * digits) / digits
    word = "less" if is_less else "more"
    return f"at {'least' if is_least else 'most'} {percent(size)}% {word}"


def change(ratio: float) -> str:
    """Return a ratio as a change: ``+15%``, ``-6.7%``, ``13.2x``."""
    return f"{number(ratio)}x" if ratio >= IN_TIMES else f"{percent(100 * (ratio - 1), '+')}%"


def percent(value: float, sign: str = "") -> str:
    """Return percent without decimals, below ten with one."""
    return f"{value:{sign}.0f}" if abs(value) >= 9.95 else f"{value:{sign}.1f}"


def difference_words(effect: Effect, unit: str) -> str:
    """Return a difference with its interval and unit."""
    if effect.bound and not math.isfinite(effect.limit):
        return ONLY_A_BOUND
    if effect.bound:
        limit = number(to_safe_side(effect.limit, effect.bound))
        return f"{effect.bound} {limit} {unit}".rstrip()
    sign = "+" if effect.estimate > 0 else ""
    interval = f" [{number(effect.low)}, {number(effect.high)}]"
    known = interval if math.isfinite(effect.low) else ""
    return f"{sign}{number(effect.estimate)} {unit}".rstrip() + known


def _study(findings: Sequence[Finding]) -> str:
    """Return what the study says: its sizes, and how they compare; or only that it says yes."""
    sizes = [size for size in map(_size, findings) if size]
    if not sizes:
        said = any(f.contrast.published_direction or f.limit for f in findings)
        return YES if said else ""
    compared = {how for _, how in sizes}
    if len(compared) > 1:
        return ", ".join(f"{size} ({how})" if how else size for size, how in sizes)
    return ", ".join([*(size for size, _ in sizes), *filter(None, compared)])


def _size(finding: Finding) -> tuple[str, str] | None:
    """Return the published size, and how it compares with the measured one."""
    contrast, effect = finding.contrast, finding.effect
    if contrast.published_ratio is not None:
        size, no_effect = contrast.published_ratio, 1.0
        bound = contrast.published_bound
        words = bound_words(bound, size) if bound else change(size)
    elif contrast.published_difference is not None:
        size, no_effect = contrast.published_difference, 0.0
        words = f"{number(size)} {finding.response.unit}".rstrip()
    else:
        return None
    judged = finding.verdict.size
    if judged is None or effect is None or finding.verdict.direction is Way.OPPOSITE:
        return words, ""
    if judged is not Size.CONTRADICTED:
        return words, AS_STUDIED[judged]
    if effect.bound:
        return words, "not as here"
    if (size - no_effect) * (effect.estimate - no_effect) < 0:
        return words, "the other way here"
    is_more = abs(size - no_effect) > abs(effect.estimate - no_effect)
    return words, "more than here" if is_more else "less than here"
