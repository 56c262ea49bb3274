"""A run's findings and summary as text: numbers with interval and n, or a dash."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from perflab.analysis.treatments.decision import FRESH_RUN, PEEKING_NOTE
from perflab.analysis.treatments.evaluation import Finding, evaluate, not_asked
from perflab.analysis.treatments.findings import (
    achieved,
    adjusted_words,
    findings_table,
    sentence,
)
from perflab.analysis.trials.core_accounts import core_sentence, core_time
from perflab.analysis.trials.decomposition import change, change_sentence, decompose, largest_phase
from perflab.analysis.trials.summary import measured_responses, measures, summary_table
from perflab.errors import AnalysisError
from perflab.recordings import Response, Run
from perflab.recordings.tables import NOT_JUDGED
from perflab.reports.judged import judged_rows, judged_sentences
from perflab.reports.numbers import MISSING, count, effect_text, measured, missing, number, p_value
from perflab.reports.variant_sentences import are_variants, compared

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
    rows = [_finding(each) for each in found]
    rows += [{**dict.fromkeys(COLUMNS, MISSING), **row} for row in judged_rows(run)]
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
    row = findings_table([finding]).iloc[0]
    response = finding.response.title
    is_difference = finding.contrast.scale == "difference"
    return {
        "claim": str(row["claim"]),
        "response": f"{response}, difference" if is_difference else response,
        "published": str(row["published"]) or MISSING,
        "measured [95%]": effect_text(finding.effect),
        "achieved": MISSING if missing(row["achieved"]) else achieved(row["achieved"]),
        "n": count(row["n"]),
        "p": p_value(row["p"]),
        ADJUSTED: p_value(row["p (adjusted)"]),
        "decision": str(row["decision"]) or MISSING,
        "verdict": str(row["verdict"]),
        "single run": str(row["single run"]) or MISSING,
        "valid trials": f"{finding.valid} of {finding.trials}",
        "left out": str(row["left out"]) or MISSING,
        "noise": str(row["noise"]) or "no flag",
        "source": MISSING if row["source"] in ("", "none") else str(row["source"]),
    }


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
    judged = [*(sentence(finding) for finding in evaluate(run)), *judged_sentences(run)]
    return [*judged, *filter(None, [not_asked(run)])]


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
