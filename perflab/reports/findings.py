"""A run's findings and summary as text and in sentences: numbers with interval and n, or a dash.

Most claims are contrasts, which one rule judges. Some claims have a rule of their own: the system
fixed it before anything was measured, and declares it (:class:`perflab.analysis.rules.Rule`).
Such a claim does not count in the adjustment of the others. Variants without published results are
compared with each other: which one is slower, and by how much.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from perflab.analysis.answers import YES, Answer, answers_to_claims
from perflab.analysis.decision import FRESH_RUN, PEEKING_NOTE
from perflab.analysis.effect_words import effect_text
from perflab.analysis.evaluation import Finding, not_asked
from perflab.analysis.findings import (
    achieved,
    decision_text,
    left_out,
    published_beside_limit,
    scope_words,
    sentence,
)
from perflab.analysis.typical_values import measured_responses, summary_table
from perflab.recordings import Run
from perflab.recordings.responses import FAILURES
from perflab.recordings.tables import JUDGED_STATES, NOT_JUDGED
from perflab.reports.causes import why_of_pairs
from perflab.reports.cells import count, measured, p_value
from perflab.reports.duels import are_variants, variant_sentences
from perflab.statistics.in_words import MISSING, counted, missing, number

ADJUSTED = "p, adjusted"
FINDING_COLUMNS = (
    "claim", "response", "published", "measured [95%]", "achieved", "n", "p", ADJUSTED, "decision",
    "verdict", "scope", "valid trials", "left out", "noise", "source",
)  # fmt: skip
# A page has room for so many answers.
MOST_ROWS = 10
COUNTS = (*JUDGED_STATES, "errors")


def readable_findings(findings: Sequence[Finding]) -> pd.DataFrame:
    """Return one row of text per finding of a run, with the columns :data:`FINDING_COLUMNS`.

    ``n`` counts blocks, or what a rule of a system counts (of single runs: trials).
    """
    return pd.DataFrame([*map(_finding_row, findings)], columns=list(FINDING_COLUMNS))


def reading_notes(findings: Sequence[Finding]) -> list[str]:
    """Return the notes that a reader of a table of findings needs.

    They tell for how many claims p-values are adjusted, where that is one number.
    """
    notes = []
    claims = {finding.claims for finding in findings if finding.claims}
    if len(claims) == 1 and max(claims) > 1:
        notes.append(f"{ADJUSTED} allows for {counted(max(claims), 'claim')}.")
    if any(FRESH_RUN in decision_text(finding) for finding in findings):
        notes.append(PEEKING_NOTE)
    return notes


def _finding_row(finding: Finding) -> dict[str, str]:
    contrast, effect = finding.contrast, finding.effect
    is_of_sides = contrast.scale in ("difference", "share")
    response = finding.response.title + f", {contrast.scale}" * is_of_sides
    known = effect is not None and not missing(effect.confidence)
    return {
        "claim": contrast.claim,
        "response": response,
        "published": published_beside_limit(finding) or MISSING,
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


def claim_answers(findings: Sequence[Finding]) -> list[Answer]:
    """Return whether each claim of a run holds here; what a run's questions ask stands first.

    Claims that nobody published are told where there are no others.
    """
    told = sorted(findings, key=lambda finding: not finding.contrast.asks)
    published = [finding for finding in told if finding.contrast.source not in ("", "none")]
    return answers_to_claims(published or told)


def answer_table(findings: Sequence[Finding]) -> pd.DataFrame:
    """Return a row of text for each claim of a run: claim, whether it holds here, the study's size.

    Claims that one fault left without a number share a row.
    """
    rows: dict[str, list[list[str]]] = {}
    for answer in claim_answers(findings):
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


def headings(run: Run) -> dict[str, str]:
    """Return the heading of each measured response in a summary, by the response's name."""
    return {
        name: (item.heading or name).replace(*_unit_of(name)[:2])
        for name, item in measured_responses(run).items()
    }


def _unit_of(name: str) -> tuple[str, str, float]:
    """Return what of a response's heading gives way to which unit, and the factor to that."""
    if name.endswith(FAILURES):
        return "failure share", "failures %", 100.0
    if "memory" in name and name.endswith("bytes"):
        return "bytes", "MB", 1e-6
    return "", "", 1.0


def readable_summary(run: Run) -> pd.DataFrame:
    """Return one row of text per treatment: trials by state, and responses over the valid ones."""
    names = headings(run)
    rows = summary_table(run).to_dict("records")
    return pd.DataFrame([_summary_row(row, names) for row in rows])


def _summary_row(row: Mapping[Any, Any], names: Mapping[str, str]) -> dict[str, str]:
    states = {name: count(row[name]) for name in (*COUNTS, NOT_JUDGED) if name in row}
    responses = {
        heading: measured(
            *(_unit_of(name)[2] * row[f"{name}{end}"] for end in ("", "_low", "_high"))
        )
        for name, heading in names.items()
    }
    low, high = row["flush_p50_us_min"], row["flush_p50_us_max"]
    flush = MISSING if missing(low) else f"{number(low)} to {number(high)}"
    return {"treatment": str(row["label"]), **states, **responses, "flush p50 us": flush}


def measured_summary(summary: pd.DataFrame) -> pd.DataFrame:
    """Return a readable summary with its trials in one column.

    A response that no trial has is left out.
    """
    trials = [_trials(row) for row in summary.to_dict("records")]
    responses = summary.columns.drop(["treatment", *JUDGED_STATES, NOT_JUDGED], errors="ignore")
    texts = summary.assign(trials=trials)[["treatment", "trials", *responses]]
    return texts.loc[:, ~(texts == MISSING).all()]


def _trials(row: Mapping[Any, Any]) -> str:
    if NOT_JUDGED in row:
        return f"{row[NOT_JUDGED]}, {NOT_JUDGED}"
    valid, invalid, failed = (int(str(row[state]).replace(",", "")) for state in JUDGED_STATES)
    return f"{valid} of {valid + invalid + failed} valid{f', {failed} failed' * bool(failed)}"


def sentences(run: Run, findings: Sequence[Finding]) -> list[str]:
    """Return the run's verdicts in sentences, and which claims it did not test.

    Variants without published results are compared with each other instead.
    """
    if are_variants(run):
        return variant_sentences(run, findings)
    return [*map(sentence, findings), *filter(None, [not_asked(run)]), *why_of_pairs(run)]
