"""The questions of a run, each answered in one sentence, beside what its study says.

A question is asked by the contrasts that name it (:attr:`Contrast.asks`); these are its primary
responses, and were named before the run. A claim is answered as it is stated: yes or no to one of a
direction, or of an effect at all; one of a size by how the effect is beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from perflab.analysis.decision import OUT_OF_REACH
from perflab.analysis.effect_words import (
    bound_words,
    change,
    effect_words,
    limit_words,
    published_size,
    refused_words,
)
from perflab.analysis.evaluation import PERCENTILE, Finding, without_percentile
from perflab.analysis.findings import joined
from perflab.analysis.noise import doubt
from perflab.analysis.results import AgainstStudy
from perflab.analysis.zones import claims_size, is_published
from perflab.recordings import Run

YES, NO, OPPOSITE = "yes", "no", "no, the other way"
NOT_DECIDED = AgainstStudy.NOT_DECIDED.value


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


def answers_of(run: Run, findings: Sequence[Finding]) -> list[Answer]:
    """Return the answers to a run's questions, in the order of its findings.

    A question has an answer for each of its results.
    """
    asked: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.contrast.asks:
            asked.setdefault(finding.contrast.asks, []).append(finding)
    why = doubt(run) if asked else ""
    return [
        replace(_answer_to(question, _by(_word_of_question, answered), answered), doubt=why)
        for question, answered in asked.items()
    ]


def answers_to_claims(findings: Sequence[Finding]) -> list[Answer]:
    """Return one answer to each claim, in the order of the findings.

    Claims that differ in the percentile alone are one.
    """
    claims: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        contrast = finding.contrast
        sides = f"{contrast.numerator} {contrast.denominator} {contrast.interaction}"
        claims.setdefault((without_percentile(contrast.claim), sides), []).append(finding)
    rows = Counter(claim for claim, _ in claims)
    return [
        _answer_to(
            claim if rows[claim] == 1 else answered[0].contrast.claim, _of_claim(answered), answered
        )
        for (claim, _), answered in claims.items()
    ]


def _answer_to(
    question: str, by_word: Mapping[str, Sequence[Finding]], findings: Sequence[Finding]
) -> Answer:
    """Return the answer to a question from its findings by the word that each of them gives.

    Of several words the first is the answer, and the others stand in brackets behind it.
    """
    first, *others = (_told(word, answered) for word, answered in by_word.items())
    text = f"{first} ({'; '.join(others)})" if others else first
    # The line has room for one of them.
    refused = next(filter(None, map(refused_words, findings)), "")
    text = "; ".join(filter(None, [text, refused]))
    decisions = [finding.decision for finding in by_word.get(NOT_DECIDED, [])]
    needed = [decision.blocks[1] for decision in decisions if decision]
    # No number of blocks decides all of them if one of them stays open.
    blocks = 0 if OUT_OF_REACH in needed else max(needed, default=0)
    return Answer(question, text, _study(findings), blocks, tuple(findings))


def _by(word: Callable[[Finding], str], findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    by_word: dict[str, list[Finding]] = {}
    for finding in findings:
        by_word.setdefault(word(finding), []).append(finding)
    return by_word


def _of_claim(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    """Return the findings of a claim by their words; the one that answers the claim is first."""
    by_word = _by(_word, findings)
    if len(by_word) == 1:
        return by_word
    of_all = joined(findings).result
    words = (_word(finding) for finding in findings if finding.verdict.result == of_all)
    first = next(words, next(iter(by_word)))
    return {first: by_word.pop(first), **by_word}


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
    """Return the answer to a claim in a word or two."""
    contrast, verdict = finding.contrast, finding.verdict
    if claims_size(contrast) or not is_published(contrast):
        return str(verdict)
    return _yes_or_no(finding) or str(verdict)


def _word_of_question(finding: Finding) -> str:
    """Return the answer to a question: yes or no, and how the effect is beside a published one."""
    verdict, word = finding.verdict, _yes_or_no(finding)
    if word == YES and claims_size(finding.contrast):
        is_open = verdict.result is AgainstStudy.IN_DIRECTION
        return word if is_open else f"{word}, {verdict}"
    is_less = verdict.result is AgainstStudy.LESS and not word
    return word or f"{NOT_DECIDED}, but {verdict}" * is_less or str(verdict)


def _yes_or_no(finding: Finding) -> str:
    """Return whether a direction, or that there is none, was found; empty where that is open."""
    result, verdict = finding.verdict.result, finding.verdict
    if finding.contrast.published_direction == "none":
        is_so = result is AgainstStudy.AS_PUBLISHED
        return YES if is_so else NO * (result is AgainstStudy.MORE)
    if result in (AgainstStudy.OTHER_WAY, AgainstStudy.NO_EFFECT):
        return OPPOSITE if result is AgainstStudy.OTHER_WAY else NO
    return YES * verdict.is_shown


def _effect_words(finding: Finding) -> str:
    """Return the effect with its interval and what it is of, or why there is none."""
    effect, contrast = finding.effect, finding.contrast
    percentile = PERCENTILE.search(contrast.claim)
    subject = contrast.subject or (percentile[1] if percentile else "")
    if contrast.set_by_load or finding.verdict.result is AgainstStudy.NOT_TESTABLE:
        return finding.verdict.reason
    if effect is None:
        return finding.absent.partition("; ")[0] or finding.verdict.reason
    limit = f" (limit: {words})" if (words := limit_words(finding)) else ""
    return f"{effect_words(finding, effect)}{limit} {subject}".rstrip()


def _study(findings: Sequence[Finding]) -> str:
    """Return the sizes that the study states; or only that it says yes, where it states none."""
    sizes = dict.fromkeys(filter(None, map(_size, findings)))
    said = any(finding.contrast.published_direction for finding in findings)
    return ", ".join(sizes) or YES * said


def _size(finding: Finding) -> str:
    contrast = finding.contrast
    if contrast.published_ratio is not None:
        size, bound = contrast.published_ratio, contrast.published_bound
        return bound_words(bound, size) if bound else change(size)
    return published_size(finding)
