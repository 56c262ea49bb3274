"""Compares variants in sentences: which one is slower, and by how much."""

from __future__ import annotations

from collections.abc import Callable

from perflab.analysis.decision import MARGIN, PEEKING_NOTE, Kind
from perflab.analysis.evaluation import Finding, evaluate
from perflab.analysis.findings import evidence
from perflab.analysis.thresholds import Crossed, Judged
from perflab.recordings import Run
from perflab.reports.conversion import estimate
from perflab.statistics.comparison import Effect
from perflab.statistics.in_words import counted, number

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
    ends = sorted(map(scale, (effect.low, effect.high)))
    if not unit:
        return estimate(middle, *ends)
    words = [f"{end:.3g}{unit}" if end < 10 else f"{end:.0f}{unit}" for end in (middle, *ends)]
    return f"{words[0]} [{words[1]}, {words[2]}]"
