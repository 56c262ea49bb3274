"""Findings in words: the published effect beside the measured one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from perflab.analysis.effect_words import (
    NO_INTERVAL,
    effect_text,
    limit_words,
    published_size,
    refused_words,
)
from perflab.analysis.evaluation import Finding
from perflab.analysis.results import DIFFERENT, OPEN, AgainstStudy, Compared, Result, Verdict
from perflab.analysis.zones import claims_size, is_published
from perflab.recordings import Contrast
from perflab.statistics.comparison import Effect
from perflab.statistics.in_words import capitalized, counted, number

# The result of one part of a claim is that of the claim, the first of these before the others.
OF_ONE_PART: tuple[Result, ...] = (
    AgainstStudy.NOT_TESTABLE, AgainstStudy.NOT_MEASURED, Compared.NOT_COMPARED,
    AgainstStudy.NOT_DECIDED, Compared.NOT_DECIDED, AgainstStudy.LESS, AgainstStudy.MORE,
    AgainstStudy.IN_DIRECTION, AgainstStudy.AS_PUBLISHED,
    Compared.WORSE, Compared.BETTER, Compared.MORE, Compared.LESS, Compared.SAME,
)  # fmt: skip


def decision_text(finding: Finding) -> str:
    """Return what would decide a ratio that is not decided, or what it shows beside its verdict.

    It is empty where the verdict says it.
    """
    decision, result = finding.decision, finding.verdict.result
    if decision is None:
        return ""
    if decision.result in DIFFERENT:
        return "a difference is shown" if result in OPEN else ""
    if decision.result is Compared.SAME:
        says_it = result in (Compared.SAME, AgainstStudy.NO_EFFECT)
        return "" if says_it else decision.text
    return "; ".join(filter(None, [decision.missing, decision.text]))


def left_out(finding: Finding) -> str:
    """Return how many blocks have no number and why, or why there is no effect; or nothing.

    Where refused trials may change it, the effect with them follows.
    """
    if finding.effect is None or not finding.left_out:
        return "; ".join(filter(None, [finding.absent, refused_words(finding)]))
    why = f": {finding.absent}" if finding.absent else ""
    blocks = f"{counted(finding.left_out, 'block')} left out{why}"
    return "; ".join(filter(None, [blocks, refused_words(finding)]))


def scope_words(finding: Finding) -> str:
    """Return how far a finding holds, and what it is if the client delayed all sides alike."""
    return "; ".join(filter(None, [finding.scope, client_words(finding)]))


def client_words(finding: Finding) -> str:
    """Return the narrower interval of times of which much may be the client's own; or nothing."""
    effect = finding.if_alike
    if effect is None or not math.isfinite(effect.low):
        return ""
    interval = f"[{number(effect.low)}, {number(effect.high)}]"
    alike = "if the client added as much to the times of both sides"
    return f"{interval} {alike}; it may have added more than a tenth"


def achieved(confidence: float) -> str:
    """Return the confidence that an interval reached: ``96.1%`` (signed ranks come in steps)."""
    return f"{confidence:.1%}"


def published_text(finding: Finding) -> str:
    """Return the published effect: a size, a direction, or an empty string."""
    contrast = finding.contrast
    if size := published_size(finding):
        return " ".join(filter(None, [contrast.published_bound, size]))
    if limit := limit_words(finding):
        # Of most claims in words the lab has set the limit.
        return f"in words; limit: {limit}"
    words = {
        "greater": f"greater than {contrast.nothing:g}",
        "smaller": f"smaller than {contrast.nothing:g}",
        "none": "no effect",
    }
    return words.get(contrast.published_direction or "", "")


def published_beside_limit(finding: Finding) -> str:
    """Return the published effect, with the limit of the claim beside a size."""
    text, limit = published_text(finding), limit_words(finding)
    return f"{text}; limit: {limit}" if limit and limit not in text else text


def sentence(finding: Finding) -> str:
    """Return the verdict in a sentence, with its evidence."""
    contrast, verdict = finding.contrast, finding.verdict
    parts = [f"{str(verdict).capitalize()}: {contrast.claim}"]
    if contrast.source not in ("", "none"):
        parts.append(f"Source: {contrast.source}")
    if finding.effect is None:
        parts += [capitalized(text) for text in (verdict.reason, finding.absent) if text]
    else:
        parts.append("; ".join([_measured(finding, finding.effect), *_remarks(finding)]))
    return ". ".join([*parts, evidence(finding)]) + "."


def evidence(finding: Finding) -> str:
    """Return the evidence beside every verdict: the valid trials, and the flags of the noise."""
    noise = f"; noise: {', '.join(finding.noise)}" if finding.noise else ""
    return f"{finding.valid} of {counted(finding.trials, 'trial')} valid{noise}"


def adjusted_words(claims: int) -> str:
    """Return the name of a p-value that is adjusted for so many claims."""
    return f"p, adjusted for {counted(claims, 'claim')}" if claims > 1 else "p, adjusted"


def _remarks(finding: Finding) -> list[str]:
    remarks = [finding.verdict.reason, *filter(None, [scope_words(finding)])]
    if words := left_out(finding):
        remarks.append(words)
    if finding.verdict.result in OPEN and finding.decision is not None:
        # The reason of the verdict already says what is missing.
        said = finding.decision.missing or finding.verdict.reason == finding.decision.text
        remarks.append(finding.decision.text if said else decision_text(finding))
    return [*dict.fromkeys(filter(None, remarks))]


def _measured(finding: Finding, effect: Effect) -> str:
    # A rule of a system counts trials.
    blocks = effect.n_words if finding.blocks else counted(effect.n, "trial")
    published = published_beside_limit(finding)
    beside = f", published {published}" if published else ""
    words = f"Measured {finding.contrast.scale} of {finding.response.title}"
    level = f"95% interval, achieved {achieved(effect.confidence)}"
    known = f"{level}; {', '.join(filter(None, [blocks, _p(finding, effect)]))}){beside}"
    words = f"{words} {effect_text(finding).removesuffix(NO_INTERVAL)}"
    if effect.bound:
        words = f"{words} (only a bound is known"
        if not math.isfinite(effect.confidence):
            return f"{words}, {blocks}){beside}"
        return f"{words}, the end of its {known}"
    if not math.isfinite(effect.low):
        return f"{words} (no interval, {blocks}){beside}"
    return f"{words} ({known}"


def _p(finding: Finding, effect: Effect) -> str:
    if math.isnan(effect.p_value):
        return ""
    p = f"p {_p_words(effect.p_value)}"
    if finding.claims > 1 and math.isfinite(finding.p_adjusted):
        p += f"; {adjusted_words(finding.claims)}, {_p_words(finding.p_adjusted)}"
    return p


def _p_words(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.2g}"


def joined(findings: Sequence[Finding]) -> Verdict:
    """Return the verdict on a claim that holds if all its parts hold.

    One part that goes the other way, or has no effect, contradicts the claim. Otherwise one part
    that is not testable, not measured or not decided gives the claim its result, and then one that
    is less or more than published.
    """
    if len(findings) == 1:
        return findings[0].verdict
    results = [finding.verdict.result for finding in findings]
    refuted = (finding.verdict.result for finding in findings if is_refuted(finding))
    why = "; ".join(
        f"{finding.contrast.name}: {finding.verdict}, {finding.verdict.reason}"
        for finding in findings
    )
    result = next(refuted, None) or next(item for item in OF_ONE_PART if item in results)
    return Verdict(result, why)


def is_refuted(finding: Finding) -> bool:
    """Return whether an effect contradicts what is claimed, whatever its size."""
    result = finding.verdict.result
    if finding.contrast.published_direction == "none":
        return result is AgainstStudy.MORE
    return result in (AgainstStudy.OTHER_WAY, AgainstStudy.NO_EFFECT)


def undecided_contrasts(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Return the names of the contrasts that the blocks so far leave undecided.

    A published claim is decided if its verdict is, for direction and size, whichever are claimed. A
    ratio without a published value is decided if the sides differ or are the same. There is nothing
    to decide for a difference without a published value, and for a claim that cannot be tested or
    whose answer the load sets.
    """
    return tuple(finding.contrast.name for finding in findings if _is_open(finding))


def can_be_decided(contrast: Contrast) -> bool:
    """Return whether more blocks can decide anything about a contrast."""
    if contrast.not_testable or contrast.set_by_load:
        return False
    sizes = (contrast.published_direction, contrast.published_ratio, contrast.published_difference)
    return contrast.scale == "ratio" or any(value is not None for value in sizes)


def _is_open(finding: Finding) -> bool:
    if not can_be_decided(finding.contrast):
        return False
    if not is_published(finding.contrast):
        return finding.decision is None or finding.decision.result is Compared.NOT_DECIDED
    return is_half_decided(finding.verdict, finding.contrast) or finding.verdict.result in OPEN


def is_half_decided(verdict: Verdict, contrast: Contrast) -> bool:
    """Return whether the direction of a published effect is shown, and its size is still open."""
    return verdict.result is AgainstStudy.IN_DIRECTION and claims_size(contrast)
