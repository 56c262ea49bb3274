"""Two treatments side by side, in sentences: which is slower, and by how much."""

from __future__ import annotations

from collections.abc import Callable

from perflab.analysis.decision import MARGIN, PEEKING_NOTE, Kind
from perflab.analysis.evaluation import Finding, evaluate
from perflab.analysis.findings import evidence
from perflab.analysis.thresholds import Crossed, Judged
from perflab.recordings import Run
from perflab.reports.markdown import estimate
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
    """Return whether a run compares variants (its one factor) of which nothing was published."""
    contrasts = run.record.contrasts
    only = list(run.record.factors) == [FACTOR]
    return only and bool(contrasts) and not any(each.source for each in contrasts)


def compared(run: Run) -> list[str]:
    """Return a sentence for each comparison of the run, and its warnings.

    Sentences of effects hold the ratio or share with its 95% interval; those about what is
    undecided say how many blocks a fresh run would need.
    """
    found = evaluate(run)
    pairs: dict[str, list[Finding]] = {}
    for each in found:
        key = f"{each.contrast.numerator} {each.contrast.denominator}"
        pairs.setdefault(key, []).append(each)
    lines = [line for pair in pairs.values() for line in _of_pair(pair)]
    if any(each.decision and each.decision.kind is Kind.UNDECIDED for each in found):
        lines.append(PEEKING_NOTE)
    return [*lines, *(f"Note: {warning.text}" for warning in run.record.warnings)]


def gate_lines(found: list[Judged]) -> list[str]:
    """Return a line for each bound: crossed, held, undecided or not compared."""
    words = {
        Crossed.YES: "FAILED: the whole 95% interval is beyond it",
        Crossed.NO: "held: the whole 95% interval is within it",
        Crossed.UNDECIDED: "undecided: the 95% interval is on both sides of it",
        Crossed.UNKNOWN: "not compared: there is no interval",
    }
    return [f"{each.threshold.text} ({_sides(each)}): {words[each.crossed]}" for each in found]


def _of_pair(found: list[Finding]) -> list[str]:
    """Return a sentence for each finding, with what it rests on; one where none could be had."""
    measured = [each for each in found if not each.contrast.set_by_load]
    if not measured or any(each.effect for each in measured):
        return [f"{_sentence(each)} {evidence(each)}." for each in found]
    # What keeps all from being compared is in each; the shortest has nothing besides.
    why = min((_why_not(each) for each in measured), key=len)
    return [f"{_both(measured[0])}: not compared. {why}. {evidence(measured[0])}."]


def _both(finding: Finding) -> str:
    return " against ".join(_names(finding))


def _names(finding: Finding) -> tuple[str, str]:
    contrast = finding.contrast
    return "/".join(contrast.numerator.values()), "/".join(contrast.denominator.values())


def _why_not(finding: Finding) -> str:
    return (finding.absent or " ".join(finding.warnings)).rstrip(".")


def _sides(each: Judged) -> str:
    return each.contrast.name.rpartition(":")[0] or each.contrast.name


def _sentence(finding: Finding) -> str:
    contrast = finding.contrast
    what = SHARES.get(contrast.response, finding.response.title)
    if contrast.response in TIMES:
        what = f"response time {TIMES[contrast.response]}"
    begin = f"{what}, {_both(finding)}"
    if contrast.set_by_load:
        return f"{begin}: not compared, {contrast.set_by_load}."
    effect = finding.effect
    if effect is None:
        return f"{begin}: not compared. {_why_not(finding)}."
    blocks = counted(effect.n, "block")
    if contrast.scale == "difference":
        return f"{begin}: {_difference(effect)} ({blocks})."
    shown = estimate(effect.estimate, effect.low, effect.high)
    if effect.bound or finding.decision is None:
        return f"{begin}: {shown} ({blocks}), too little to decide."
    match finding.decision.kind:
        case Kind.EQUIVALENT:
            return f"{begin}: no difference larger than {MARGIN:.0%} ({shown}, {blocks})."
        case Kind.UNDECIDED:
            way_out = "; ".join(filter(None, [finding.decision.missing, finding.decision.text]))
            return f"{begin}: undecided ({shown}, {blocks}); {way_out}."
    return f"{_difference_of(finding, effect)} ({blocks})."


def _difference(effect: Effect) -> str:
    """Return a difference of shares, in percentage points."""
    ends = (effect.low, effect.estimate, effect.high)
    low, middle, high = (number(each * PERCENT) for each in ends)
    return f"{middle} [{low}, {high}] percentage points more"


def _difference_of(finding: Finding, effect: Effect) -> str:
    """Return a difference that is certain: as a factor of time, or as a share more or less."""
    response, (new, old) = finding.contrast.response, _names(finding)
    if response in TIMES:
        word, power = ("slow", 1) if effect.estimate > 1 else ("fast", -1)
        shown = _shown(effect, lambda ratio: float(ratio**power))
        return f"{new} is {shown} times as {word} {TIMES[response]} as {old}"
    shown = _shown(effect, lambda ratio: abs(ratio - 1) * PERCENT, "%")
    noun = SHARES.get(response, finding.response.title)
    verb = "takes" if response in OF_SERVICE else "has"
    return f"{new} {verb} {shown} {'more' if effect.estimate > 1 else 'less'} {noun} than {old}"


def _shown(effect: Effect, scale: Callable[[float], float], unit: str = "") -> str:
    """Return an estimate with its interval on another scale, the smaller end first."""
    middle = scale(effect.estimate)
    ends = sorted(map(scale, (effect.low, effect.high)))
    if not unit:
        return estimate(middle, *ends)
    words = [f"{each:.3g}{unit}" if each < 10 else f"{each:.0f}{unit}" for each in (middle, *ends)]
    return f"{words[0]} [{words[1]}, {words[2]}]"
