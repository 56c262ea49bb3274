"""Claims that a rule of its system's own judges, as rows and sentences of a run.

Most claims are contrasts, and one rule judges them all. Of some a system has a rule of its own,
fixed before anything was measured, which a view declares (:class:`perflab.figures.Judging`). Such a
claim has no p-value: it is no member of a family, and corrects none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perflab.analysis.treatments.evaluation import Finding
from perflab.analysis.treatments.findings import achieved, evidence, left_out, published_text
from perflab.analysis.treatments.joint import JointClaim
from perflab.numerals import number
from perflab.recordings import Run
from perflab.reports.numbers import MISSING, count, effect_text, missing

OF_ALL = "all of its parts"
IN_WORDS = "in words"


def claims_by_rule(run: Run) -> dict[str, JointClaim]:
    """Return the claims of a run that rules of its system's own judge, by name."""
    # What draws is slow to import, and most of what asks for verdicts draws nothing.
    from perflab.reports.pictures import judging_of

    return {name: claim for rule in judging_of(run) for name, claim in rule.of(run).items()}


def judged_rows(run: Run) -> list[dict[str, str]]:
    """Return a row of text per claim or part of one, by column, without those that it lacks.

    A claim of several parts has a row for each, and one for all of them.
    """
    rows = []
    for name, claim in claims_by_rule(run).items():
        rows += [_part(each) for each in claim.findings]
        if len(claim.findings) > 1:
            rows.append(_whole(name, claim))
    return rows


def _part(finding: Finding) -> dict[str, str]:
    effect = finding.effect
    row = {
        "claim": finding.contrast.claim,
        "response": finding.response.title,
        "published": _published(finding),
        "measured [95%]": effect_text(effect),
        "n": count(effect.n if effect else 0),
        "verdict": str(finding.verdict),
        "valid trials": _valid([finding]),
        "noise": "; ".join(finding.noise) or "no flag",
        "source": finding.contrast.source or MISSING,
    }
    if effect is not None and not missing(effect.confidence):
        row["achieved"] = achieved(effect.confidence)
    why = left_out(finding) or ("" if effect else finding.verdict.reason)
    return {**row, "left out": why} if why else row


def _whole(name: str, claim: JointClaim) -> dict[str, str]:
    findings = claim.findings
    sources = dict.fromkeys(each.contrast.source for each in findings if each.contrast.source)
    noise = dict.fromkeys(flag for each in findings for flag in each.noise)
    return {
        "claim": f"{name}: {_asked(claim)}",
        "response": OF_ALL,
        "verdict": str(claim.verdict),
        "valid trials": _valid(findings),
        "noise": "; ".join(noise) or "no flag",
        "source": "; ".join(sources) or MISSING,
    }


def _asked(claim: JointClaim) -> str:
    return ", and ".join(each.contrast.claim for each in claim.findings)


def _published(finding: Finding) -> str:
    """Return the published size, or that there is none, and what the rule holds the claim to."""
    contrast = finding.contrast
    ratio, difference = contrast.published_ratio, contrast.published_difference
    sizes = [number(each) for each in (ratio, difference) if each is not None]
    if finding.limit:
        return "; ".join([*(sizes or [IN_WORDS]), f"the rule: {finding.limit}"])
    return published_text(contrast) or MISSING


def _valid(findings: Sequence[Finding]) -> str:
    """Return how many trials are valid, of the part that looks at most of them."""
    most = max(findings, key=lambda each: each.trials)
    return f"{most.valid} of {most.trials}"


def judged_sentences(run: Run) -> Iterator[str]:
    """Yield the verdict on each claim that a rule of its system's own judges, in words."""
    for claim in claims_by_rule(run).values():
        most = max(claim.findings, key=lambda each: each.trials)
        sources = dict.fromkeys(each.contrast.source for each in claim.findings)
        parts = [
            f"{str(claim.verdict).capitalize()}: {_asked(claim)}",
            f"Source: {'; '.join(sources)}" if all(sources) else "",
            *(_measured(each) for each in claim.findings if each.effect),
            f"{claim.verdict.reason[:1].upper()}{claim.verdict.reason[1:]}",
            evidence(most),
        ]
        yield ". ".join(filter(None, parts)) + "."


def _measured(finding: Finding) -> str:
    title = finding.response.title
    n = finding.effect.n if finding.effect else 0
    numbers = f"{effect_text(finding.effect)} (95% interval, n = {n})"
    return f"{title[:1].upper()}{title[1:]}: {numbers}, published {_published(finding)}"
