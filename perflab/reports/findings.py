"""A run's findings and summary as text: numbers with interval and n, or a dash.

Most claims are contrasts, which one rule judges. Some claims have a rule of their own: the system
fixed it before anything was measured, and a view declares it (:class:`perflab.figures.Judging`).
Such a claim has no p-value and does not count in the adjustment of the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from perflab.analysis.core_accounts import core_sentence, core_time
from perflab.analysis.decision import FRESH_RUN, PEEKING_NOTE
from perflab.analysis.evaluation import Finding, evaluate, not_asked
from perflab.analysis.findings import (
    JointClaim,
    achieved,
    adjusted_words,
    decision_text,
    evidence,
    left_out,
    published_text,
    sentence,
    single_run,
)
from perflab.analysis.time_parts import change, change_sentence, decompose, largest_phase
from perflab.analysis.validity import measured_responses, measures, summary_table
from perflab.errors import AnalysisError
from perflab.recordings import Response, Run
from perflab.recordings.tables import NOT_JUDGED
from perflab.reports.conversion import (
    count,
    effect_text,
    measured,
    p_value,
)
from perflab.reports.variant_sentences import are_variants, compared
from perflab.statistics.in_words import MISSING, missing, number

# The beginning of the column's name, which says for how many claims: see :func:`columns`.
ADJUSTED = "p, adjusted"
COLUMNS = (
    "claim", "response", "published", "measured [95%]", "achieved", "n", "p", ADJUSTED, "decision",
    "verdict", "scope", "single run", "valid trials", "left out", "noise", "source",
)  # fmt: skip
SINGLE_RUN_NOTE = (
    "Single run: how likely one trial of each side, one after the other and with the scatter of "
    "this machine, would show the published sign, and a size within the zone of the verdict."
)
COUNTS = ("valid", "invalid", "failed", "errors")
# A page has room for so many treatments side by side.
MOST_ACROSS = 4
IN_WORDS, OF_ALL = "in words", "all of its parts"
BRIEF = ("claim", "response", "published", "measured [95%]", "n", ADJUSTED, "verdict")


def columns(adjusted: str) -> list[str]:
    """Return the columns of a table of findings; ``adjusted`` names the adjusted p-values."""
    return [adjusted if name == ADJUSTED else name for name in COLUMNS]


def readable_findings(run: Run, adjusted: str = "") -> pd.DataFrame:
    """Return one row of text per claim of ``run``, with the columns of :func:`columns`.

    The contrasts stand first, then the claims that a rule of the system judges; these have a dash
    for the p-value. ``n`` counts blocks, or what such a rule counts (of single runs: trials).
    ``adjusted`` names the column of the adjusted p-values. By default its name gives the number of
    claims that they are adjusted for, where that is one number.
    """
    contrast_findings = evaluate(run)
    counts = {finding.claims for finding in contrast_findings if finding.claims}
    names = columns(adjusted or adjusted_words(counts.pop() if len(counts) == 1 else 0))
    rows = [*map(_finding_row, contrast_findings), *_judged_rows(run)]
    return pd.DataFrame(rows, columns=list(COLUMNS)).set_axis(names, axis=1)


def reading_notes(table: pd.DataFrame) -> list[str]:
    """Return the notes that a reader of a table of findings needs."""
    notes = []
    if (table["single run"] != MISSING).any():
        notes.append(SINGLE_RUN_NOTE)
    if table["decision"].str.contains(FRESH_RUN, regex=False).any():
        notes.append(PEEKING_NOTE)
    return notes


def _finding_row(finding: Finding) -> dict[str, str]:
    contrast, effect = finding.contrast, finding.effect
    response = finding.response.title
    known = effect is not None and not missing(effect.confidence)
    return {
        "claim": contrast.claim,
        "response": f"{response}, difference" if contrast.scale == "difference" else response,
        "published": published_text(contrast) or MISSING,
        "measured [95%]": effect_text(effect),
        "achieved": achieved(effect.confidence) if effect and known else MISSING,
        "n": count(effect.n if effect else 0),
        "p": p_value(effect.p_value if effect else math.nan),
        ADJUSTED: p_value(finding.p_adjusted),
        "decision": decision_text(finding) or MISSING,
        "verdict": str(finding.verdict),
        "scope": finding.scope or MISSING,
        "single run": single_run(finding) or MISSING,
        "valid trials": f"{finding.valid} of {finding.trials}",
        "left out": left_out(finding) or MISSING,
        "noise": "; ".join(finding.noise) or "no flag",
        "source": MISSING if contrast.source in ("", "none") else contrast.source,
    }


def claims_by_rule(run: Run) -> dict[str, JointClaim]:
    """Return the claims of a run that rules of its system judge, by name."""
    # The drawing code is slow to import, and most callers want verdicts only.
    from perflab.reports.figures import judging_of

    return {name: claim for rule in judging_of(run) for name, claim in rule.of(run).items()}


def _judged_rows(run: Run) -> Iterator[dict[str, str]]:
    """Yield a row for each finding of a claim by rule, and one for the claim if it has several."""
    for name, claim in claims_by_rule(run).items():
        yield from map(_part_row, claim.findings)
        if len(claim.findings) > 1:
            yield _whole_row(name, claim)


def _part_row(finding: Finding) -> dict[str, str]:
    why = left_out(finding) or ("" if finding.effect else finding.verdict.reason)
    return {
        **_finding_row(finding),
        **dict.fromkeys(("p", ADJUSTED, "decision", "single run"), MISSING),
        "response": finding.response.title,
        "published": _published(finding),
        "left out": why or MISSING,
    }


def _whole_row(name: str, claim: JointClaim) -> dict[str, str]:
    findings = claim.findings
    sources = dict.fromkeys(part.contrast.source for part in findings if part.contrast.source)
    noise = dict.fromkeys(flag for part in findings for flag in part.noise)
    most = _of_most_trials(findings)
    return {
        **dict.fromkeys(COLUMNS, MISSING),
        "claim": f"{name}: {_claim_text(claim)}",
        "response": OF_ALL,
        "verdict": str(claim.verdict),
        "valid trials": f"{most.valid} of {most.trials}",
        "noise": "; ".join(noise) or "no flag",
        "source": "; ".join(sources) or MISSING,
    }


def _of_most_trials(findings: Sequence[Finding]) -> Finding:
    return max(findings, key=lambda finding: finding.trials)


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
        f"{claim.verdict.reason[:1].upper()}{claim.verdict.reason[1:]}",
        evidence(_of_most_trials(claim.findings)),
    ]
    return ". ".join(filter(None, parts)) + "."


def _measured(finding: Finding) -> str:
    title = finding.response.title
    n = finding.effect.n if finding.effect else 0
    numbers = f"{effect_text(finding.effect)} (95% interval, n = {n})"
    return f"{title[:1].upper()}{title[1:]}: {numbers}, published {_published(finding)}"


def readable_summary(run: Run) -> pd.DataFrame:
    """Return one row of text per treatment: trials by state, and responses over the valid ones."""
    responses = measured_responses(run)
    rows = summary_table(run).to_dict("records")
    return pd.DataFrame([_summary_row(row, responses) for row in rows])


def _summary_row(row: Mapping[Any, Any], declared: Mapping[str, Response]) -> dict[str, str]:
    states = {name: count(row[name]) for name in (*COUNTS, NOT_JUDGED) if name in row}
    responses = {
        response.heading or name: measured(row[name], row[f"{name}_low"], row[f"{name}_high"])
        for name, response in declared.items()
    }
    flush = {"flush p50 us": MISSING}
    if not missing(row["flush_p50_us_min"]):
        low, high = number(row["flush_p50_us_min"]), number(row["flush_p50_us_max"])
        flush = {"flush p50 us": f"{low} to {high}"}
    return {"treatment": str(row["label"]), **states, **responses, **flush}


def brief(findings: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of a table of findings that fit a page; sentences tell the others.

    The column "left out" is among them where it holds a reason.
    """
    chosen = [*BRIEF]
    if (findings["left out"] != MISSING).any():
        chosen.append("left out")
    names = list(map(str, findings.columns))
    return findings[[name for name in names if name in chosen or name.startswith(ADJUSTED)]]


def measured_tables(run: Run) -> list[pd.DataFrame]:
    """Return what each treatment did, in tables of a few treatments side by side."""
    table = readable_summary(run)
    counts = [name for name in COUNTS if name in table]
    measured = [name for name in table.columns if name not in ("treatment", *counts)]
    # A response without any measurement has no row.
    rows = [*counts, *(name for name in measured if (table[name] != MISSING).any())]
    across = table.set_index("treatment")[rows].T
    across.index.name = "typical [95%]"
    groups = range(0, across.shape[1], MOST_ACROSS)
    return [across.iloc[:, n : n + MOST_ACROSS].reset_index() for n in groups]


def sentences(run: Run) -> list[str]:
    """Return the run's verdicts in sentences, and which claims it did not test.

    Variants without published results are compared with each other instead.
    """
    if are_variants(run):
        return compared(run)
    by_rule = map(_judged_sentence, claims_by_rule(run).values())
    return [*map(sentence, evaluate(run)), *by_rule, *filter(None, [not_asked(run)])]


def bottlenecks(run: Run) -> list[str]:
    """Return where each treatment's time goes, and which parts make up each contrast's change.

    There are two sentences per treatment (the parts of its response time; its time on the cores),
    then one per contrast between two single treatments. Runs without requests have none.
    """
    if not measures(run, "mean_ms") or "requests" in run.missing:
        return []
    requests = run.requests()
    table = decompose(requests)
    labels = {item.name: item.label or item.name for item in run.record.treatments}
    measured_names = set(table["treatment"])
    texts = [largest_phase(table, name, labels[name]) for name in labels if name in measured_names]
    accounts = core_time(run)
    texts += filter(None, [core_sentence(accounts, name, labels[name]) for name in labels])
    for before, after in dict.fromkeys(_pairs(run)):
        try:
            changes = change(requests, before, after)
        except AnalysisError:
            continue
        words = change_sentence(changes, labels[before], labels[after])
        texts.append(words[0].upper() + words[1:])
    return texts


def _pairs(run: Run) -> Iterator[tuple[str, str]]:
    for contrast in run.record.contrasts:
        sides = [
            run.record.selected(levels) for levels in (contrast.denominator, contrast.numerator)
        ]
        if contrast.interaction is None and all(len(side) == 1 for side in sides):
            yield sides[0][0], sides[1][0]
