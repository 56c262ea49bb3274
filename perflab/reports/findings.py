"""A run's findings and summary as text: numbers with interval and n, or a dash.

Most claims are contrasts, and one rule judges them all. Of some a system has a rule of its own,
fixed before anything was measured, which a view declares (:class:`perflab.figures.Judging`). Such a
claim has no p-value: it is no member of a family, and corrects none.
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
from perflab.reports.markdown import count, effect_text, measured, p_value
from perflab.reports.variant_sentences import are_variants, compared
from perflab.statistics.in_words import MISSING, missing, number

# "p, adjusted ..." says for how many claims: see :func:`columns`.
ADJUSTED = "p, adjusted"
COLUMNS = (
    "claim", "response", "published", "measured [95%]", "achieved", "n", "p", ADJUSTED, "decision",
    "verdict", "single run", "valid trials", "left out", "noise", "source",
)  # fmt: skip
SINGLE_RUN_NOTE = (
    "Single run: how likely one trial of each side, one after the other and with the scatter of "
    "this machine, would show the published sign, and a size within the zone of the verdict."
)
COUNTS = ("valid", "invalid", "failed", "errors")
# What a page is wide enough for.
MOST_ACROSS = 4
IN_WORDS, OF_ALL = "in words", "all of its parts"
BRIEF = ("claim", "response", "published", "measured [95%]", "n", ADJUSTED, "verdict")


def columns(adjusted: str) -> list[str]:
    """Return the columns of a table of findings, given what its adjusted p-values are called."""
    return [adjusted if name == ADJUSTED else name for name in COLUMNS]


def readable_findings(run: Run, adjusted: str = "") -> pd.DataFrame:
    """Return one row of text per claim of ``run``, with the columns of :func:`columns`.

    Claims that a rule of its system's own judges follow those of its contrasts, with a dash where
    they have nothing, such as a p-value. ``n`` counts blocks, or what such a rule counts (of single
    runs: trials). The column of the adjusted p-values is called after the number of claims
    that they are adjusted for, where that is one number, unless ``adjusted`` names it.
    """
    found = evaluate(run)
    counts = {each.claims for each in found if each.claims}
    named = columns(adjusted or adjusted_words(counts.pop() if len(counts) == 1 else 0))
    rows = [*map(_finding, found), *_judged_rows(run)]
    return pd.DataFrame(rows, columns=list(COLUMNS)).set_axis(named, axis=1)


def reading_notes(table: pd.DataFrame) -> list[str]:
    """Return what a reader of a table of findings must know of what it says."""
    notes = []
    if (table["single run"] != MISSING).any():
        notes.append(SINGLE_RUN_NOTE)
    if table["decision"].str.contains(FRESH_RUN, regex=False).any():
        notes.append(PEEKING_NOTE)
    return notes


def _finding(finding: Finding) -> dict[str, str]:
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
        "single run": single_run(finding) or MISSING,
        "valid trials": f"{finding.valid} of {finding.trials}",
        "left out": left_out(finding) or MISSING,
        "noise": "; ".join(finding.noise) or "no flag",
        "source": MISSING if contrast.source in ("", "none") else contrast.source,
    }


def claims_by_rule(run: Run) -> dict[str, JointClaim]:
    """Return the claims of a run that rules of its system's own judge, by name."""
    # What draws is slow to import, and most of what asks for verdicts draws nothing.
    from perflab.reports.figures import judging_of

    return {name: claim for rule in judging_of(run) for name, claim in rule.of(run).items()}


def _judged_rows(run: Run) -> Iterator[dict[str, str]]:
    """Yield a row for each part of a claim by rule; of several parts also one for all of them."""
    for name, claim in claims_by_rule(run).items():
        yield from map(_part, claim.findings)
        if len(claim.findings) > 1:
            yield _whole(name, claim)


def _part(finding: Finding) -> dict[str, str]:
    why = left_out(finding) or ("" if finding.effect else finding.verdict.reason)
    return {
        **_finding(finding),
        **dict.fromkeys(("p", ADJUSTED, "decision", "single run"), MISSING),
        "response": finding.response.title,
        "published": _published(finding),
        "left out": why or MISSING,
    }


def _whole(name: str, claim: JointClaim) -> dict[str, str]:
    findings = claim.findings
    sources = dict.fromkeys(each.contrast.source for each in findings if each.contrast.source)
    noise = dict.fromkeys(flag for each in findings for flag in each.noise)
    most = _of_most_trials(findings)
    return {
        **dict.fromkeys(COLUMNS, MISSING),
        "claim": f"{name}: {_asked(claim)}",
        "response": OF_ALL,
        "verdict": str(claim.verdict),
        "valid trials": f"{most.valid} of {most.trials}",
        "noise": "; ".join(noise) or "no flag",
        "source": "; ".join(sources) or MISSING,
    }


def _of_most_trials(findings: Sequence[Finding]) -> Finding:
    return max(findings, key=lambda each: each.trials)


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


def _judged_sentence(claim: JointClaim) -> str:
    """Return the verdict on a claim by rule, in words."""
    sources = dict.fromkeys(each.contrast.source for each in claim.findings)
    parts = [
        f"{str(claim.verdict).capitalize()}: {_asked(claim)}",
        f"Source: {'; '.join(sources)}" if all(sources) else "",
        *(_measured(each) for each in claim.findings if each.effect),
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
    return pd.DataFrame([_summary(row, responses) for row in rows])


def _summary(row: Mapping[Any, Any], declared: Mapping[str, Response]) -> dict[str, str]:
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

    Why there is no number, or none of some blocks, stands with them where there is such a reason.
    """
    wanted = [*BRIEF]
    if (findings["left out"] != MISSING).any():
        wanted.append("left out")
    names = list(map(str, findings.columns))
    return findings[[name for name in names if name in wanted or name.startswith(ADJUSTED)]]


def measured_tables(run: Run) -> list[pd.DataFrame]:
    """Return what each treatment did: treatments side by side, a few in each table."""
    table = readable_summary(run)
    counts = [name for name in COUNTS if name in table]
    measured = [name for name in table.columns if name not in ("treatment", *counts)]
    # What nothing was measured of has no row.
    rows = [*counts, *(name for name in measured if (table[name] != MISSING).any())]
    across = table.set_index("treatment")[rows].T
    across.index.name = "typical [95%]"
    groups = range(0, across.shape[1], MOST_ACROSS)
    return [across.iloc[:, n : n + MOST_ACROSS].reset_index() for n in groups]


def sentences(run: Run) -> list[str]:
    """Return the run's verdicts, written from the data, and what was not asked of it.

    Variants of which nothing was published have no claim to judge: they stand side by side.
    """
    if are_variants(run):
        return compared(run)
    by_rule = map(_judged_sentence, claims_by_rule(run).values())
    return [*map(sentence, evaluate(run)), *by_rule, *filter(None, [not_asked(run)])]


def bottlenecks(run: Run) -> list[str]:
    """Return where each treatment's time goes, and what each contrast's change is made of.

    Two sentences per treatment (the parts of its response time; what it cost the cores), then one
    per contrast between two single treatments. Empty for runs that do not measure requests.
    """
    if not measures(run, "mean_ms") or "requests" in run.missing:
        return []
    requests = run.requests()
    table = decompose(requests)
    labels = {item.name: item.label or item.name for item in run.record.treatments}
    measured_ones = set(table["treatment"])
    found = [largest_phase(table, name, labels[name]) for name in labels if name in measured_ones]
    accounts = core_time(run)
    found += filter(None, [core_sentence(accounts, name, labels[name]) for name in labels])
    for before, after in dict.fromkeys(_pairs(run)):
        try:
            changes = change(requests, before, after)
        except AnalysisError:
            continue
        words = change_sentence(changes, labels[before], labels[after])
        found.append(words[0].upper() + words[1:])
    return found


def _pairs(run: Run) -> Iterator[tuple[str, str]]:
    for contrast in run.record.contrasts:
        sides = [
            run.record.selected(levels) for levels in (contrast.denominator, contrast.numerator)
        ]
        if contrast.interaction is None and all(len(side) == 1 for side in sides):
            yield sides[0][0], sides[1][0]
