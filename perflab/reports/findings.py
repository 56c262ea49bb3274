"""A run's findings and summary as text and in sentences: numbers with interval and n, or a dash.

Most claims are contrasts, which one rule judges. Some claims have a rule of their own: the system
fixed it before anything was measured, and a view declares it (:class:`perflab.figures.Judging`).
Such a claim has no p-value and does not count in the adjustment of the others. Variants without
published results are compared with each other: which one is slower, and by how much.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

import pandas as pd

from perflab.analysis.answers import YES, Answer, answer_to_claim
from perflab.analysis.decision import FRESH_RUN, MARGIN, PEEKING_NOTE, Kind
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
from perflab.analysis.thresholds import Crossed, Judged
from perflab.analysis.validity import measured_responses, summary_table
from perflab.recordings import Run
from perflab.recordings.tables import NOT_JUDGED
from perflab.reports.conversion import count, effect_text, estimate, measured, p_value
from perflab.statistics.comparison import Effect
from perflab.statistics.in_words import MISSING, counted, missing, number

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
# A page has room for so many answers.
MOST_ROWS = 10
COUNTS = ("valid", "invalid", "failed", "errors")
IN_WORDS, OF_ALL = "in words", "all of its parts"


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
    rows = [*map(_finding_row, contrast_findings)]
    for name, claim in claims_by_rule(run).items():
        rows += map(_part_row, claim.findings)
        # A claim of several parts has a row for each and one for all.
        rows += [_whole_row(name, claim)] if len(claim.findings) > 1 else []
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


def answer_table(run: Run) -> pd.DataFrame:
    """Return a row of text for each claim of a run: claim, whether it holds here, the study's size.

    What a run's questions ask stands first. Claims that nobody published are told where there are
    no others. Claims that one fault left without a number share a row.
    """
    findings = sorted(evaluate(run), key=lambda finding: not finding.contrast.asks)
    findings += [part for claim in claims_by_rule(run).values() for part in claim.findings]
    published = [finding for finding in findings if finding.contrast.source not in ("", "none")]
    rows: dict[str, list[list[str]]] = {}
    for finding in published or findings:
        answer = answer_to_claim(finding)
        key = answer.text if finding.effect is None else answer.question
        rows.setdefault(key, []).append(_answer_row(answer))
    shared = [
        group[0] if len(group) == 1 else [f"{len(group)} claims", key, ""]
        for key, group in rows.items()
    ]
    if len(shared) > MOST_ROWS + 1:
        shared = [*shared[:MOST_ROWS], [f"{len(shared) - MOST_ROWS} more claims", "", ""]]
    return pd.DataFrame(shared, columns=["claim", "here", "study"])


def _answer_row(answer: Answer) -> list[str]:
    way_out = f"; about {counted(answer.blocks, 'block')} would decide it" * (answer.blocks > 0)
    return [answer.question, f"{answer.text}{way_out}", "" if answer.study == YES else answer.study]


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
        f"{claim.verdict.reason[:1].upper()}{claim.verdict.reason[1:]}",
        evidence(max(claim.findings, key=attrgetter("trials"))),
    ]
    return ". ".join(filter(None, parts)) + "."


def _measured(finding: Finding) -> str:
    title, effect = finding.response.title, finding.effect
    numbers = f"{effect_text(effect)} (95% interval, n = {effect.n if effect else 0})"
    return f"{title[:1].upper()}{title[1:]}: {numbers}, published {_published(finding)}"


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


def sentences(run: Run) -> list[str]:
    """Return the run's verdicts in sentences, and which claims it did not test.

    Variants without published results are compared with each other instead.
    """
    if are_variants(run):
        return compared(run)
    by_rule = map(_judged_sentence, claims_by_rule(run).values())
    return [*map(sentence, evaluate(run)), *by_rule, *filter(None, [not_asked(run)])]


TIMES = {"mean_ms": "on the mean", "p50_ms": "at p50", "p99_ms": "at p99"}
SHARES = {
    "throughput_rps": "throughput",
    "service_cpu_us_per_request": "CPU per request",
    "service_memory_bytes": "memory",
}
OF_SERVICE = ("service_cpu_us_per_request", "service_memory_bytes")
FACTOR = "variant"
PERCENT = 100.0


def are_variants(run: Run) -> bool:
    """Return whether a run compares variants (its one factor) without any published result."""
    contrasts = run.record.contrasts
    only = list(run.record.factors) == [FACTOR]
    return only and bool(contrasts) and not any(contrast.source for contrast in contrasts)


def compared(run: Run) -> list[str]:
    """Return a sentence for each comparison of the run, and its warnings.

    An effect has its ratio or share with the 95% interval. An undecided comparison has the number
    of blocks that a fresh run would need.
    """
    findings = evaluate(run)
    pairs: dict[str, list[Finding]] = {}
    for finding in findings:
        key = f"{finding.contrast.numerator} {finding.contrast.denominator}"
        pairs.setdefault(key, []).append(finding)
    lines = [line for pair in pairs.values() for line in _pair_sentences(pair)]
    if any(finding.decision and finding.decision.kind is Kind.UNDECIDED for finding in findings):
        lines.append(PEEKING_NOTE)
    return [*lines, *(f"Note: {warning.text}" for warning in run.record.warnings)]


def gate_lines(bounds: list[Judged]) -> list[str]:
    """Return a line for each bound: crossed, held, undecided or not compared."""
    words = {
        Crossed.YES: "FAILED: the whole 95% interval is beyond it",
        Crossed.NO: "held: the whole 95% interval is within it",
        Crossed.UNDECIDED: "undecided: the 95% interval is on both sides of it",
        Crossed.UNKNOWN: "not compared: there is no interval",
    }
    return [f"{bound.threshold.text} ({_sides(bound)}): {words[bound.crossed]}" for bound in bounds]


def _pair_sentences(findings: list[Finding]) -> list[str]:
    """Return a sentence for each finding of a pair; only one where nothing could be compared."""
    measured = [finding for finding in findings if not finding.contrast.set_by_load]
    if not measured or any(finding.effect for finding in measured):
        return [f"{_sentence(finding)} {evidence(finding)}." for finding in findings]
    # Every finding names the common reason; the shortest text names nothing else.
    why = min((_why_not(finding) for finding in measured), key=len)
    return [f"{_both(measured[0])}: not compared. {why}. {evidence(measured[0])}."]


def _both(finding: Finding) -> str:
    return " against ".join(_names(finding))


def _names(finding: Finding) -> tuple[str, str]:
    contrast = finding.contrast
    return "/".join(contrast.numerator.values()), "/".join(contrast.denominator.values())


def _why_not(finding: Finding) -> str:
    return (finding.absent or " ".join(finding.warnings)).rstrip(".")


def _sides(bound: Judged) -> str:
    return bound.contrast.name.rpartition(":")[0] or bound.contrast.name


def _sentence(finding: Finding) -> str:
    contrast = finding.contrast
    subject = SHARES.get(contrast.response, finding.response.title)
    if contrast.response in TIMES:
        subject = f"response time {TIMES[contrast.response]}"
    beginning = f"{subject}, {_both(finding)}"
    if contrast.set_by_load:
        return f"{beginning}: not compared, {contrast.set_by_load}."
    effect = finding.effect
    if effect is None:
        return f"{beginning}: not compared. {_why_not(finding)}."
    blocks = counted(effect.n, "block")
    if contrast.scale == "difference":
        return f"{beginning}: {_difference(effect)} ({blocks})."
    shown = estimate(effect.estimate, effect.low, effect.high)
    if effect.bound or finding.decision is None:
        return f"{beginning}: {shown} ({blocks}), too little to decide."
    scope = f", {finding.scope}" if finding.scope else ""
    match finding.decision.kind:
        case Kind.EQUIVALENT:
            words = f"no difference larger than {MARGIN:.0%} ({shown}, {blocks})"
            return f"{beginning}: {words}{scope}."
        case Kind.UNDECIDED:
            way_out = "; ".join(filter(None, [finding.decision.missing, finding.decision.text]))
            return f"{beginning}: undecided ({shown}, {blocks}); {way_out}."
    return f"{_shown_difference(finding, effect)} ({blocks}){scope}."


def _difference(effect: Effect) -> str:
    """Return a difference of shares, in percentage points."""
    ends = (effect.low, effect.estimate, effect.high)
    low, middle, high = (number(end * PERCENT) for end in ends)
    return f"{middle} [{low}, {high}] percentage points more"


def _shown_difference(finding: Finding, effect: Effect) -> str:
    """Return a sentence on a shown difference: a factor of time, or a share more or less."""
    response, (new, old) = finding.contrast.response, _names(finding)
    if response in TIMES:
        word, power = ("slow", 1) if effect.estimate > 1 else ("fast", -1)
        shown = _rescaled(effect, lambda ratio: float(ratio**power))
        return f"{new} is {shown} times as {word} {TIMES[response]} as {old}"
    shown = _rescaled(effect, lambda ratio: abs(ratio - 1) * PERCENT, "%")
    noun = SHARES.get(response, finding.response.title)
    verb = "takes" if response in OF_SERVICE else "has"
    return f"{new} {verb} {shown} {'more' if effect.estimate > 1 else 'less'} {noun} than {old}"


def _rescaled(effect: Effect, scale: Callable[[float], float], unit: str = "") -> str:
    """Return an estimate with its interval on another scale, the smaller end first."""
    middle = scale(effect.estimate)
    low, high = sorted(map(scale, (effect.low, effect.high)))
    if not unit:
        return estimate(middle, low, high)
    return estimate(middle, low, high, lambda end: f"{end:{'.3g' if end < 10 else '.0f'}}{unit}")
