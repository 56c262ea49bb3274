"""The questions of a run, each answered in one sentence, beside what its study says.

A question is asked by the contrasts that name it (:attr:`Contrast.asks`); these are its primary
responses, and were named before the run. A claim is answered in the same words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from perflab.analysis.decision import MARGIN, Kind
from perflab.analysis.evaluation import Finding, evaluate
from perflab.analysis.noise import doubt
from perflab.analysis.verdict import Outcome, Size, Way
from perflab.recordings import Run
from perflab.statistics.comparison import Effect
from perflab.statistics.in_words import counted, number

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
# From this ratio on an effect is told in times, below it in percent.
IN_TIMES = 2.0


@dataclass(frozen=True)
class Answer:
    """A question with its answer and, in a few words, what the study says (empty: nothing).

    ``blocks`` would decide what is not decided, if the effect is the one seen (0: it is decided, or
    no number is known). ``doubt`` says why the answer may not hold elsewhere (empty: no reason).
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


def answer_to(question: str, findings: Sequence[Finding]) -> Answer:
    """Return the answer to a question; to a claim it says in the same words whether it holds."""
    words = [_word(finding) for finding in findings]
    is_open = any(word in (NOT_DECIDED, NOT_MEASURED) for word in words)
    parts = [_effect_words(finding) for finding in findings]
    if len(set(words)) == 1:
        numbers = ", ".join(dict.fromkeys(filter(None, parts)))
        text = ": ".join(filter(None, [words[0], numbers]))
    else:
        text = "; ".join(f"{word}: {part}" for word, part in zip(words, parts, strict=True))
    blocks = [finding.decision.blocks[1] for finding in findings if finding.decision]
    needed = max(blocks, default=0) if is_open else 0
    return Answer(question, text, _study(findings), needed, tuple(findings))


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
    return NO if decision and decision.kind is Kind.EQUIVALENT else NOT_DECIDED


def _effect_words(finding: Finding) -> str:
    """Return the effect with its interval and what it is of, or why there is none."""
    effect, subject = finding.effect, finding.contrast.subject
    if finding.verdict.outcome in (Outcome.NOT_TESTABLE, Outcome.SET_BY_LOAD):
        return finding.verdict.reason
    if effect is None:
        return finding.absent.partition("; ")[0] or finding.verdict.reason
    unit, is_ratio = finding.response.unit, finding.contrast.scale == "ratio"
    words = ratio_words(effect) if is_ratio else difference_words(effect, unit)
    if finding.limit:
        words = f"{words.removeprefix('+')} (the rule: {finding.limit})"
    blocks = "" if _word(finding) != NOT_DECIDED else f" in {counted(effect.n, 'block')}"
    return f"{words} {subject}".rstrip() + blocks


def ratio_words(effect: Effect) -> str:
    """Return a ratio as a change in percent with its interval, or in times if it is large."""
    if effect.bound:
        return f"{effect.bound} {change(effect.limit)}"
    if not math.isfinite(effect.low):
        return change(effect.estimate)
    if effect.estimate >= IN_TIMES:
        return f"{change(effect.estimate)} [{number(effect.low)}, {number(effect.high)}]"
    low, high = (percent(100 * (end - 1)) for end in (effect.low, effect.high))
    return f"{change(effect.estimate)} [{low}, {high}]"


def change(ratio: float) -> str:
    """Return a ratio as a change: ``+15%``, ``-6.7%``, ``13.2x``."""
    return f"{number(ratio)}x" if ratio >= IN_TIMES else f"{percent(100 * (ratio - 1), '+')}%"


def percent(value: float, sign: str = "") -> str:
    """Return percent without decimals, below ten with one."""
    return f"{value:{sign}.0f}" if abs(value) >= 9.95 else f"{value:{sign}.1f}"


def difference_words(effect: Effect, unit: str) -> str:
    """Return a difference with its interval and unit."""
    if effect.bound:
        return f"{effect.bound} {number(effect.limit)} {unit}".rstrip()
    sign = "+" if effect.estimate > 0 else ""
    interval = f" [{number(effect.low)}, {number(effect.high)}]"
    known = interval if math.isfinite(effect.low) else ""
    return f"{sign}{number(effect.estimate)} {unit}".rstrip() + known


def _study(findings: Sequence[Finding]) -> str:
    """Return what the study says: its sizes, and how they compare; or only that it says yes."""
    sizes = [size for size in map(_size, findings) if size]
    if not sizes:
        published = any(finding.contrast.published_direction for finding in findings)
        return "yes" if published else ""
    compared = {how for _, how in sizes}
    if len(compared) > 1:
        return ", ".join(f"{size} ({how})" if how else size for size, how in sizes)
    return ", ".join([*(size for size, _ in sizes), *filter(None, compared)])


def _size(finding: Finding) -> tuple[str, str] | None:
    """Return the published size, and how it compares with the measured one."""
    contrast, effect = finding.contrast, finding.effect
    if contrast.published_ratio is not None:
        size, no_effect = contrast.published_ratio, 1.0
        words = change(size)
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
    is_more = abs(size - no_effect) > abs(effect.estimate - no_effect)
    return words, "more than here" if is_more else "less than here"
