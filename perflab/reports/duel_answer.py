"""The answer of a duel in one line: what differs, what does not, what is open, and the gate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter

from perflab.analysis.decision import MARGIN
from perflab.analysis.effect_words import IN_TIMES, effect_text, percent, ratio_words
from perflab.analysis.evaluation import Finding
from perflab.analysis.gates.not_compared import is_compared, why_not
from perflab.analysis.gates.thresholds import NAMES, Threshold
from perflab.analysis.results import DIFFERENT, Compared, Gate
from perflab.recordings.responses import split_request
from perflab.reports import failures
from perflab.reports.duel_pairs import Pair
from perflab.statistics.in_words import at_least, number

CPU, MEMORY, FAILURES = NAMES["cpu"], NAMES["memory"], NAMES["failures"]
THROUGHPUT = NAMES["throughput"]
# The places of a time in a sentence; the first that was compared stands for response time.
TIMES = {"mean_ms": "", "p50_ms": " at p50", "p99_ms": " at p99"}
NOUNS = {CPU: "CPU", MEMORY: "memory"}
SUBJECTS = {
    "mean_ms": "mean response time", "p50_ms": "response time at p50",
    "p99_ms": "response time at p99", CPU: "CPU",
}  # fmt: skip
TIME_FORMS = ("is {}% slower", "answers in {}% less time", "is {} times as slow")
NOUN_FORMS = ("uses {}% more ", "uses {}% less ", "uses {} times as much ")
PERCENT = 100.0
# The order in which a first line names the results of thresholds.
OF_GATE = (Gate.FAILED, Gate.NOT_DECIDED, Gate.NOT_JUDGED)
# Forms of sentences about one of several requests: in which one.
IN_REQUEST = " in {}"


def differs(pair: Pair) -> bool:
    """Return whether the response time or the CPU of a pair differs for certain."""
    return any(
        pair.findings[name].verdict.result in DIFFERENT
        for name in (*TIMES, CPU)
        if name in pair.findings
    )


def answer(pair: Pair, is_only: bool = True) -> str:
    """Return the answer in one line: how the new variant differs from the old one, and the gate.

    The answer names what differs, what is not decided, what is the same, and what could not be
    compared. It speaks of the response time (its mean; p50 or p99 if there is none) and of CPU, and
    of another response only where it differs and these two do not say so. The new variant's name is
    in it where something differs, and where the pair is not the only one.
    """
    if not is_compared(pair.findings):
        why = f"{pair.new} could not be compared: {why_not(pair.findings)}".removesuffix(": ")
        return "; ".join(filter(None, [why, _gate_words(pair.gate)]))
    different, undecided, same, not_compared = [], [], [], []
    for finding in in_the_answer(pair.findings):
        result, response = finding.verdict.result, finding.contrast.response
        if result in DIFFERENT:
            different.append(_difference(finding))
        elif result is Compared.NOT_COMPARED:
            not_compared.append(SUBJECTS[response])
        elif result is Compared.SAME:
            same.append(SUBJECTS[response])
        else:
            undecided.append(f"{SUBJECTS[response]} {_effect_words(finding)}")
    parts = [
        f"{pair.new} {_in_one(different)}" if different else "",
        f"not decided: {_in_one(undecided)}" if undecided else "",
        f"no difference larger than {MARGIN:.0%} in {' or '.join(same)}" if same else "",
        f"not compared: {_in_one(not_compared)}" if not_compared else "",
    ]
    variant = "" if is_only or different else pair.new
    told = "; ".join(filter(None, [*parts, _gate_words(pair.gate)]))
    return ": ".join(filter(None, [variant, told]))


def in_the_answer(findings: Mapping[str, Finding]) -> list[Finding]:
    """Return the findings of the answer: response time, CPU, and what else differs."""
    times = [findings[name] for name in TIMES if name in findings]
    time = next(filter(attrgetter("effect"), times), times[0])
    # Where failed requests leave the mean open, a percentile may tell more.
    decidable = (item for item in times if item.effect and not failures.is_open(item, findings))
    time = next(decidable, time)
    chosen = [time, *([findings[CPU]] if CPU in findings else [])]
    for name in (*TIMES, MEMORY, FAILURES):
        result = findings[name].verdict.result if name in findings else Compared.NOT_COMPARED
        if result in DIFFERENT and not (name in TIMES and result is time.verdict.result):
            chosen.append(findings[name])
    return [*chosen, *_requests_that_differ(findings)]


def _requests_that_differ(findings: Mapping[str, Finding]) -> Iterator[Finding]:
    """Yield the rows of single requests that differ; p99 only where it says more than the mean."""
    told: set[tuple[str, object]] = set()
    for response, finding in findings.items():
        base, request = split_request(response)
        result = finding.verdict.result
        if request and result in DIFFERENT:
            if base in TIMES and (request, result) in told:
                continue
            told.add((request, result))
            yield finding


def _in_one(texts: Sequence[str]) -> str:
    """Return ``a, b and c``."""
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last


def _effect_words(finding: Finding) -> str:
    effect = finding.effect
    assert effect is not None
    words = effect_text(finding) if effect.bound else ratio_words(effect)
    return f"{words} in {effect.n_words}" if finding.decision is None else words


def _difference(finding: Finding) -> str:
    """Return a shown difference with its interval: ``is 9.1% slower [8.7, 9.6]``."""
    effect, (response, request) = finding.effect, split_request(finding.contrast.response)
    assert effect is not None
    where = IN_REQUEST.format(request) * bool(request)
    ends = [effect.limit] if effect.bound else [effect.estimate, effect.low, effect.high]
    if response == FAILURES:
        form = f"has {{}} percentage points {'more' if ends[0] > 0 else 'fewer'} failures{where}"
        return _filled(form, [PERCENT * abs(end) for end in ends], number)
    if response in TIMES and ends[0] <= 1 / IN_TIMES:
        form = f"is {{}} times as fast{TIMES[response]}{where}"
        return _filled(form, [1 / end for end in ends], number)
    forms = TIME_FORMS if response in TIMES else NOUN_FORMS
    more, less, times = (f"{form}{(TIMES | NOUNS)[response]}{where}" for form in forms)
    if ends[0] >= IN_TIMES:
        return _filled(times, ends, number)
    return _filled(more if ends[0] > 1 else less, [PERCENT * abs(end - 1) for end in ends], percent)


def _filled(form: str, changes: Sequence[float], digits: Callable[[float], str]) -> str:
    """Return a form with a change and its interval; a change alone is a lower bound."""
    if len(changes) == 1:
        return form.format(f"at least {at_least(changes[0]).removeprefix('>= ')}")
    low, high = map(digits, sorted(changes[1:]))
    return f"{form.format(digits(changes[0]))} [{low}, {high}]"


def _gate_words(gate: Mapping[Threshold, Gate]) -> str:
    """Return ``gate: passed``, or the thresholds not held: ``gate: FAILED p50>1.05``."""
    texts = {
        result: [threshold.text for threshold, of in gate.items() if of is result]
        for result in OF_GATE
    }
    parts = [f"{result} {', '.join(of)}" for result, of in texts.items() if of]
    return f"gate: {'; '.join(parts) or Gate.PASSED}" if gate else ""
