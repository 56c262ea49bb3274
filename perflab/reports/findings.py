"""A run's findings and summary as text and in sentences: numbers with interval and n, or a dash.

Most claims are contrasts, which one rule judges. Some claims have a rule of their own: the system
fixed it before anything was measured, and declares it (:class:`perflab.analysis.rules.Rule`).
Such a claim has no p-value and does not count in the adjustment of the others. Variants without
published results are compared with each other: which one is slower, and by how much.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import pandas as pd

from perflab.analysis.answers import YES, Answer, answers_to_claims
from perflab.analysis.decision import FRESH_RUN, PEEKING_NOTE
from perflab.analysis.evaluation import Finding, not_asked
from perflab.analysis.findings import (
    JointClaim,
    achieved,
    adjusted_words,
    decision_text,
    evidence,
    left_out,
    published_text,
    scope_words,
    sentence,
)
from perflab.analysis.typical_values import measured_responses, summary_table
from perflab.recordings import Run
from perflab.recordings.tables import NOT_JUDGED
from perflab.reports.cells import count, effect_text, measured, p_value
from perflab.reports.duels import are_variants, variant_sentences
from perflab.reports.rules import claims_by_rule
from perflab.statistics.in_words import MISSING, capitalized, counted, missing, number

# The beginning of the column's name, which says for how many claims.
ADJUSTED = "p, adjusted"
COLUMNS = (
    "claim", "response", "published", "measured [95%]", "achieved", "n", "p", ADJUSTED, "decision",
    "verdict", "scope", "valid trials", "left out", "noise", "source",
)  # fmt: skip
# A page has room for so many answers.
MOST_ROWS = 10
COUNTS = ("valid", "invalid", "failed", "errors")
IN_WORDS, OF_ALL = "in words", "all of its parts"


def readable_findings(run: Run, findings: Sequence[Finding]) -> pd.DataFrame:
    """Return one row of text per claim of ``run``, with the columns :data:`COLUMNS`.

    The contrasts stand first, then the claims that a rule of the system judges; these have a dash
    for the p-value. ``n`` counts blocks, or what such a rule counts (of single runs: trials). The
    name of the column of the adjusted p-values gives the number of claims that they are adjusted
    for, where that is one number.
    """
    counts = {finding.claims for finding in findings if finding.claims}
    adjusted = adjusted_words(counts.pop() if len(counts) == 1 else 0)
    rows = [*map(_finding_row, findings)]
    for name, claim in claims_by_rule(run).items():
        rows += map(_part_row, claim.findings)
        # A claim of several parts has a row for each and one for all.
        rows += [_whole_row(name, claim)] if len(claim.findings) > 1 else []
    return pd.DataFrame(rows, columns=list(COLUMNS)).rename(columns={ADJUSTED: adjusted})


def reading_notes(table: pd.DataFrame) -> list[str]:
    """Return the notes that a reader of a table of findings needs."""
    is_needed = table["decision"].str.contains(FRESH_RUN, regex=False).any()
    return [PEEKING_NOTE] if is_needed else []


def _finding_row(finding: Finding) -> dict[str, str]:
    contrast, effect = finding.contrast, finding.effect
    response = finding.response.title
    known = effect is not None and not missing(effect.confidence)
    return {
        "claim": contrast.claim,
        "response": f"{response}, difference" if contrast.scale == "difference" else response,
        "published": published_text(contrast) or MISSING,
        "measured [95%]": effect_text(finding),
        "achieved": achieved(effect.confidence) if effect and known else MISSING,
        "n": effect.n_text if effect else "0",
        "p": p_value(effect.p_value if effect else math.nan),
        ADJUSTED: p_value(finding.p_adjusted),
        "decision": decision_text(finding) or MISSING,
        "verdict": str(finding.verdict),
        "scope": scope_words(finding) or MISSING,
        "valid trials": f"{finding.valid} of {finding.trials}",
        "left out": left_out(finding) or MISSING,
        "noise": "; ".join(finding.noise) or "no flag",
        "source": MISSING if contrast.source in ("", "none") else contrast.source,
    }


def claim_answers(run: Run, findings: Sequence[Finding]) -> list[Answer]:
    """Return whether each claim of a run holds here; what a run's questions ask stands first.

    Claims that nobody published are told where there are no others.
    """
    told = sorted(findings, key=lambda finding: not finding.contrast.asks)
    told += [part for claim in claims_by_rule(run).values() for part in claim.findings]
    published = [finding for finding in told if finding.contrast.source not in ("", "none")]
    return answers_to_claims(published or told)


def answer_table(run: Run, findings: Sequence[Finding]) -> pd.DataFrame:
    """Return a row of text for each claim of a run: claim, whether it holds here, the study's size.

    Claims that one fault left without a number share a row.
    """
    rows: dict[str, list[list[str]]] = {}
    for answer in claim_answers(run, findings):
        has_number = any(finding.effect for finding in answer.findings)
        rows.setdefault(answer.question if has_number else answer.text, []).append(
            _answer_row(answer)
        )
    groups = [*rows.items()]
    most = MOST_ROWS if len(groups) > MOST_ROWS + 1 else len(groups)
    shown = [
        group[0] if len(group) == 1 else [f"{len(group)} claims", key, ""]
        for key, group in groups[:most]
    ]
    if more := sum(len(group) for _, group in groups[most:]):
        shown.append([f"{more} more claims", "", ""])
    return pd.DataFrame(shown, columns=["claim", "here", "study"])


def _answer_row(answer: Answer) -> list[str]:
    blocks = counted(answer.blocks, "block")
    way_out = f"; a fresh run of about {blocks} would decide it" * (answer.blocks > 0)
    return [answer.question, f"{answer.text}{way_out}", "" if answer.study == YES else answer.study]


def _part_row(finding: Finding) -> dict[str, str]:
    why = left_out(finding) or ("" if finding.effect else finding.verdict.reason)
    return {
        **_finding_row(finding),
        **dict.fromkeys(("p", ADJUSTED, "decision"), MISSING),
        "response": finding.response.title,
        "published": _published(finding),
        "left out": why or MISSING,
    }


def _whole_row(name: str, claim: JointClaim) -> dict[str, str]:
    findings = claim.findings
    sources = dict.fromkeys(part.contrast.source for part in findings if part.contrast.source)
    noise = dict.fromkeys(flag for part in findings for flag in part.noise)
    most = max(findings, key=attrgetter("trials"))
    return {
        **dict.fromkeys(COLUMNS, MISSING),
        "claim": f"{name}: {_claim_text(claim)}",
        "response": OF_ALL,
        "verdict": str(claim.verdict),
        "valid trials": f"{most.valid} of {most.trials}",
        "noise": "; ".join(noise) or "no flag",
        "source": "; ".join(sources) or MISSING,
    }


def _claim_text(claim: JointClaim) -> str:
    return ", and ".join(finding.contrast.claim for finding in claim.findings)


def _published(finding: Finding) -> str:
    """Return the published size (or that there is none) and the limit of the rule."""
    contrast = finding.contrast
    ratio, difference = contrast.published_ratio, contrast.published_difference
    sizes = [number(size) for size in (ratio, difference) if size is not None]
    if finding.limit:
        return "; ".join([*(sizes or [IN_WORDS]), f"the rule: {finding.limit}"])
    return published_text(contrast) or MISSING


def _judged_sentence(claim: JointClaim) -> str:
    """Return the verdict on a claim by rule, in words."""
    sources = dict.fromkeys(finding.contrast.source for finding in claim.findings)
    parts = [
        f"{str(claim.verdict).capitalize()}: {_claim_text(claim)}",
        f"Source: {'; '.join(sources)}" if all(sources) else "",
        *(_measured(finding) for finding in claim.findings if finding.effect),
        capitalized(claim.verdict.reason),
        evidence(max(claim.findings, key=attrgetter("trials"))),
    ]
    return ". ".join(filter(None, parts)) + "."


def _measured(finding: Finding) -> str:
    title, effect = finding.response.title, finding.effect
    numbers = f"{effect_text(finding)} (95% interval, n = {effect.n_text if effect else 0})"
    return f"{capitalized(title)}: {numbers}, published {_published(finding)}"


def headings(run: Run) -> dict[str, str]:
    """Return the heading of each measured response in a summary, by the response's name."""
    return {name: item.heading or name for name, item in measured_responses(run).items()}


def readable_summary(run: Run) -> pd.DataFrame:
    """Return one row of text per treatment: trials by state, and responses over the valid ones."""
    names = headings(run)
    rows = summary_table(run).to_dict("records")
    return pd.DataFrame([_summary_row(row, names) for row in rows])


def _summary_row(row: Mapping[Any, Any], names: Mapping[str, str]) -> dict[str, str]:
    states = {name: count(row[name]) for name in (*COUNTS, NOT_JUDGED) if name in row}
    responses = {
        heading: measured(row[name], row[f"{name}_low"], row[f"{name}_high"])
        for name, heading in names.items()
    }
    low, high = row["flush_p50_us_min"], row["flush_p50_us_max"]
    flush = MISSING if missing(low) else f"{number(low)} to {number(high)}"
    return {"treatment": str(row["label"]), **states, **responses, "flush p50 us": flush}


def sentences(run: Run, findings: Sequence[Finding]) -> list[str]:
    """Return the run's verdicts in sentences, and which claims it did not test.

    Variants without published results are compared with each other instead.
    """
    if are_variants(run):
        return variant_sentences(run, findings)
    by_rule = map(_judged_sentence, claims_by_rule(run).values())
    return [*map(sentence, findings), *by_rule, *filter(None, [not_asked(run)])]
