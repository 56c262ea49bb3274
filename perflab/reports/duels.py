"""What a comparison of variants says: the answer in a line, a table, and what limits them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

import pandas as pd

from perflab.analysis.decision import MARGIN, Kind
from perflab.analysis.doubts.block_trend import rise_within
from perflab.analysis.doubts.still_warming import still_warming
from perflab.analysis.doubts.unseen_answers import unlike, unseen_answers
from perflab.analysis.effect_words import (
    IN_TIMES,
    effect_text,
    percent,
    ratio_words,
    refused_words,
)
from perflab.analysis.evaluation import Finding
from perflab.analysis.findings import client_words
from perflab.analysis.gates.first_line import VARIANT, are_of_a_duel
from perflab.analysis.gates.gate_blocks import fewest_blocks
from perflab.analysis.gates.not_compared import is_compared, why_not
from perflab.analysis.gates.thresholds import NAMES, Judged, Threshold
from perflab.analysis.noise import DOUBTS
from perflab.analysis.results import DIFFERENT, Compared, Gate
from perflab.analysis.typical_values import typical_values
from perflab.analysis.validity import listed_reasons, why_unmeasured
from perflab.recordings import Run
from perflab.recordings.responses import SHARED_STORE, STORE_ROWS, split_request
from perflab.reports import failures
from perflab.reports.causes import why_lines
from perflab.statistics.comparison import SMALLEST_N, SMALLEST_SIGNED_RANK, USUAL_P
from perflab.statistics.in_words import MISSING, at_least, counted, missing, number

CPU, MEMORY, FAILURES = NAMES["cpu"], NAMES["memory"], NAMES["failures"]
THROUGHPUT = NAMES["throughput"]
NAME_OF = {response: name for name, response in NAMES.items()}
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
# Units of the table, as factors of those of the recording.
UNITS = {
    "throughput_rps": ("/s", 1.0), CPU: ("us/request", 1.0), MEMORY: ("MB", 1e-6),
    FAILURES: ("%", PERCENT),
}  # fmt: skip
# The order in which a first line names the results of thresholds.
OF_GATE = (Gate.FAILED, Gate.NOT_DECIDED, Gate.NOT_JUDGED)
MOST_REASONS = 2
# Forms of sentences about one of several requests: in which one.
IN_REQUEST = " in {}"
# Remarks that stand elsewhere.
BESIDE = (*DOUBTS, SHARED_STORE)
# Stores differ from this share of their rows on; so much of the slower side's rate both can hold.
ROWS_APART, OF_THE_SLOWER = 0.01, 0.8
LENGTH, DIGEST = "answer_bytes", "answer_digest"


def are_variants(run: Run) -> bool:
    """Return whether a run compares variants (its one factor) without any published result."""
    return list(run.record.factors) == [VARIANT] and are_of_a_duel(run.record.contrasts)


def variant_sentences(run: Run, findings: Sequence[Finding]) -> list[str]:
    """Return the answer of a run of variants in a line for each pair, and what limits it."""
    pairs = pairs_of(findings, (), ())
    answers = (line for pair in pairs for line in answer_lines(run, pair, len(pairs) == 1))
    beside = beside_the_answer(run, pairs)
    return [*still_warming(run), *other_answers(run), *answers, *beside, *notes(run, pairs)]


def answer_lines(run: Run, pair: Pair, is_only: bool = True) -> list[str]:
    """Return the answer; below it what it is with refused trials if one side has more, and why."""
    told = [(finding, refused_words(finding)) for finding in _in_the_answer(pair.findings)]
    refused = [f"{name_of(one.contrast.response)}: {words}" for one, words in told if words]
    why = why_lines(run, *treatments_of(run, next(iter(pair.findings.values()))))
    return [answer(pair, is_only), *refused, *why]


def beside_the_answer(run: Run, pairs: Sequence[Pair]) -> list[str]:
    """Return what stands right below the answers: stores that are shared, or not equally full."""
    shared = [item.text for item in run.record.warnings if item.code == SHARED_STORE]
    return [*shared, *(text for pair in pairs if (text := _rows_apart(run, pair)))]


def _rows_apart(run: Run, pair: Pair) -> str:
    """Return that the faster variant has written more, and so measured a larger store."""
    finding, trials = pair.findings.get(THROUGHPUT), run.valid_trials()
    if finding is None or finding.verdict.result not in DIFFERENT or STORE_ROWS not in trials:
        return ""
    medians = trials.groupby("treatment")[[STORE_ROWS, THROUGHPUT]].median()
    new, old = (medians.loc[name] for name in treatments_of(run, finding))
    if not abs(new[STORE_ROWS] - old[STORE_ROWS]) > ROWS_APART * old[STORE_ROWS]:
        return ""
    rate = float(f"{OF_THE_SLOWER * min(new[THROUGHPUT], old[THROUGHPUT]):.2g}")
    way_out = (
        "pacing_s in the script" if run.record.parameters.get("script") else f"--rate {rate:g}"
    )
    return (
        f"rows in the store at the end of a trial: {new[STORE_ROWS]:,.0f} of {pair.new}, "
        f"{old[STORE_ROWS]:,.0f} of {pair.old}: the load writes, and the faster side measures a "
        f"fuller store; {way_out} gives both equal work"
    )


def variants_answer(run: Run, findings: Sequence[Finding]) -> str:
    """Return the answer of a run of two variants in one line; of more of them, nothing."""
    pairs = pairs_of(findings, (), ())
    return "; ".join([*still_warming(run), answer(pairs[0])]) if len(pairs) == 1 else ""


def other_answers(run: Run) -> list[str]:
    """Return a sentence for each variant whose answers are others: under load, or than the first's.

    What a variant answers under load is held against all checks before the loads
    (:func:`perflab.analysis.doubts.unseen_answers.unseen_answers`).

    Every trial has the length and the digest of one body. Where a variant's bodies differ among
    themselves (they may hold the time), lengths that do not overlap tell it from the baseline.
    """
    trials, under_load = run.trials(), [*unseen_answers(run).values()]
    if DIGEST not in trials:
        return [*under_load, *unlike(run)]
    answered = trials.dropna(subset=[LENGTH])
    old, *others = (
        (name, answered[answered[f"factor_{VARIANT}"] == name])
        for name in run.record.factors[VARIANT]
    )
    apart = [(name, bodies) for name, bodies in others if _are_apart(old[1], bodies)]
    lengths = [dict.fromkeys((_lengths(bodies), _lengths(old[1]))) for _, bodies in apart]
    return under_load + [
        f"{name} and {old[0]} give different answers: bodies of {' and '.join(both)} bytes"
        f"{' that differ' * (len(both) == 1)}. They may not do the same work."
        for (name, _), both in zip(apart, lengths, strict=True)
    ]


def _are_apart(old: pd.DataFrame, new: pd.DataFrame) -> bool:
    if old.empty or new.empty:
        return False
    digests = set(old[DIGEST]), set(new[DIGEST])
    if all(len(of_side) == 1 for of_side in digests):
        return digests[0] != digests[1]
    first, last = sorted((old[LENGTH], new[LENGTH]), key=lambda lengths: float(lengths.min()))
    return float(first.max()) < float(last.min())


def _lengths(rows: pd.DataFrame) -> str:
    least, most = int(rows[LENGTH].min()), int(rows[LENGTH].max())
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def differs(pair: Pair) -> bool:
    """Return whether the response time or the CPU of a pair differs for certain."""
    return any(
        pair.findings[name].verdict.result in DIFFERENT
        for name in (*TIMES, CPU)
        if name in pair.findings
    )


def name_of(response: str) -> str:
    """Return what a row is called: ``p99``, or ``create:p99`` of one of several requests."""
    base, request = split_request(response)
    return f"{request}:{NAME_OF[base]}" if request else NAME_OF[base]


@dataclass(frozen=True)
class Pair:
    """A variant against the baseline: findings by response, and the results of thresholds."""

    new: str
    old: str
    findings: Mapping[str, Finding]
    gate: Mapping[Threshold, Gate]


def pairs_of(
    findings: Iterable[Finding], thresholds: Sequence[Threshold], results: Iterable[Judged]
) -> list[Pair]:
    """Return the pairs of a duel.

    A threshold on what was not measured is not judged, nor is one that a pair held of which nothing
    was compared.
    """
    by_sides: dict[tuple[str, str], dict[str, Finding]] = {}
    for finding in findings:
        contrast = finding.contrast
        new, old = ("/".join(side.values()) for side in (contrast.numerator, contrast.denominator))
        by_sides.setdefault((new, old), {})[contrast.response] = finding
    judged = {(item.contrast.name, item.threshold): item.result for item in results}

    def result_of(threshold: Threshold, of_pair: Mapping[str, Finding]) -> Gate:
        finding = of_pair.get(threshold.response)
        result = judged[finding.contrast.name, threshold] if finding else Gate.NOT_JUDGED
        is_judged = result is Gate.FAILED or is_compared(of_pair)
        return result if is_judged else Gate.NOT_JUDGED

    return [
        Pair(*sides, of_pair, {item: result_of(item, of_pair) for item in thresholds})
        for sides, of_pair in by_sides.items()
    ]


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
    for finding in _in_the_answer(pair.findings):
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
        f"{pair.new} {_listed(different)}" if different else "",
        f"not decided: {_listed(undecided)}" if undecided else "",
        f"no difference larger than {MARGIN:.0%} in {' or '.join(same)}" if same else "",
        f"not compared: {_listed(not_compared)}" if not_compared else "",
    ]
    variant = "" if is_only or different else pair.new
    told = "; ".join(filter(None, [*parts, _gate_words(pair.gate)]))
    return ": ".join(filter(None, [variant, told]))


def _in_the_answer(findings: Mapping[str, Finding]) -> list[Finding]:
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


def _listed(texts: Sequence[str]) -> str:
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


def result_table(run: Run, pairs: Sequence[Pair]) -> pd.DataFrame:
    """Return a row of text for each response of each pair.

    Values of variants are typical ones over the ``n`` blocks compared.
    """
    rows = []
    for pair in pairs:
        for response, finding in pair.findings.items():
            trials = run.trials_of(response)
            unit, factor = UNITS.get(split_request(response)[0], ("ms", 1.0))
            new, old = (
                _value(trials[trials["treatment"] == treatment], finding, factor)
                for treatment in treatments_of(run, finding)
            )
            rows.append(
                {
                    **({"variant": pair.new} if len(pairs) > 1 else {}),
                    "response": f"{name_of(response)}, {unit}",
                    pair.old: old,
                    "variant's" if len(pairs) > 1 else pair.new: new,
                    "ratio [95%]": effect_text(finding),
                    "n": finding.effect.n_text if finding.effect else "0",
                    "verdict": "; ".join([str(finding.verdict), *_gate_of(pair, response)]),
                }
            )
    return pd.DataFrame(rows)


def treatments_of(run: Run, finding: Finding) -> list[str]:
    """Return the names of the variant's treatment and of the baseline's."""
    sides = (finding.contrast.numerator, finding.contrast.denominator)
    return [name for side in sides for name in run.record.selected(side)]


def _value(trials: pd.DataFrame, finding: Finding, factor: float) -> str:
    """Return the typical value of a variant in the compared blocks, or its lower bound."""
    response = finding.contrast.response
    if finding.effect is None:
        return MISSING
    typical = typical_values(trials[trials["block"].isin(finding.blocks)], [response])
    value, low = typical[response], typical[f"{response}_low"]
    if missing(value) and not missing(low):
        return at_least(low * factor)
    return number(value * factor)


def _gate_of(pair: Pair, response: str) -> list[str]:
    """Return the results of a response's thresholds, if it has any: ``gate: FAILED >1.05``."""
    texts = [
        f"{result} {threshold.text.removeprefix(name_of(response))}"
        for threshold, result in pair.gate.items()
        if threshold.response == response
    ]
    return [f"gate: {', '.join(texts)}"] if texts else []


def notes(run: Run, pairs: Sequence[Pair]) -> list[str]:
    """Return what limits the results of a duel, each thing once."""
    trials = run.current_trials()
    refused = trials[trials["state"] != "valid"]
    first = f"{len(trials) - len(refused)} of {counted(len(trials), 'trial')} count"
    noise = next(finding.noise for pair in pairs for finding in pair.findings.values())
    lines = [f"{first}; noise: {', '.join(noise)}" if noise else first]
    if len(refused):
        reasons = listed_reasons(refused["reasons"])
        others = [f"{len(reasons) - MOST_REASONS} more in the section"]
        shown = reasons[:MOST_REASONS] + others * (len(reasons) > MOST_REASONS)
        lines.append(f"{len(refused)} do not: {'; '.join(shown)}")
    if any(finding.effect for pair in pairs for finding in pair.findings.values()):
        lines.append(
            "values are medians over the blocks (geometric means below 6 blocks), ratios are taken "
            "within each block: so a ratio need not be that of the two values"
        )
    counts = [
        finding.effect.n for pair in pairs for finding in pair.findings.values() if finding.effect
    ]
    if any(SMALLEST_N <= count < SMALLEST_SIGNED_RANK for count in counts):
        lines.append(
            f"{counted(min(counts), 'block')}: these intervals hold only if the noise is normal; "
            f"from {SMALLEST_SIGNED_RANK} blocks on it need not be"
        )
    lines += filter(None, [rise_within(run)])
    lines += [*_of_other_blocks(run, pairs), *_limits(run, pairs), *_of_gate(pairs)]
    known = (item.text for item in run.record.warnings if item.code not in BESIDE)
    return [*lines, *(f"note: {text}" for text in known)]


def _limits(run: Run, pairs: Sequence[Pair]) -> Iterator[str]:
    """Yield the caveats of all findings, each with its responses, and what would decide others."""
    names_by_text: dict[str, list[str]] = {}
    blocks: dict[str, int] = {}
    for pair in pairs:
        for response, finding in pair.findings.items():
            name = f"{pair.new} " * (len(pairs) > 1) + name_of(response)
            for text in _caveats(run, pair, finding):
                names_by_text.setdefault(text, []).append(name)
            is_open = failures.is_open(finding, pair.findings)
            if finding.decision is not None and finding.decision.blocks[1] > 0 and not is_open:
                blocks[name] = finding.decision.blocks[1]
    for text, names in names_by_text.items():
        yield f"{', '.join(names)}: {text}"
    if blocks:
        yield (
            f"{', '.join(blocks)}: not decided; a fresh run of up to {max(blocks.values()):,} "
            "blocks (--blocks) would decide, if the ratios are those seen"
        )


def _of_other_blocks(run: Run, pairs: Sequence[Pair]) -> Iterator[str]:
    """Yield that other tables show other values, where valid trials are in no compared block."""
    valid = run.valid_trials()
    if any(
        set(valid[valid["treatment"].isin(treatments_of(run, finding))]["block"])
        - set(finding.blocks)
        for pair in pairs
        for finding in pair.findings.values()
        if finding.effect is not None and finding.effect.looks is None
    ):
        yield (
            "values here are of the blocks compared; perflab show has those of all valid trials, "
            "and they differ"
        )


def _of_gate(pairs: Sequence[Pair]) -> Iterator[str]:
    """Yield that too few blocks count for a gate to fail, where that left thresholds unjudged."""
    bounds = sum(len(pair.gate) for pair in pairs)
    names: dict[str, int] = {}
    for pair in pairs:
        for threshold, result in pair.gate.items():
            finding = pair.findings.get(threshold.response)
            effect = finding.effect if finding else None
            if result is Gate.NOT_JUDGED and effect is not None and is_compared(pair.findings):
                names[threshold.text] = effect.n
    if names:
        yield (
            f"{', '.join(names)}: not judged, because only {counted(min(names.values()), 'block')} "
            f"count; a gate of {counted(bounds, 'threshold')} needs {fewest_blocks(bounds)} to fail"
        )


def _caveats(run: Run, pair: Pair, finding: Finding) -> Iterator[str]:
    """Yield why a response was not compared or decided, and how far its result holds."""
    decision, undecided = finding.decision, finding.verdict.result is Compared.NOT_DECIDED
    if finding.effect is None and not finding.contrast.set_by_load:
        valid = run.valid_trials()
        valid = valid[valid["treatment"].isin(treatments_of(run, finding))]
        yield why_unmeasured(valid, finding.response) or finding.verdict.reason
    if undecided and finding.effect and finding.effect.n < SMALLEST_N:
        yield finding.verdict.reason
    elif undecided and finding.effect and finding.effect.p_value <= USUAL_P:
        questions = counted(finding.claims, "question")
        yield f"the interval excludes no difference, which is not certain over {questions} (Holm)"
    if decision is not None and decision.kind is Kind.UNDECIDED and decision.blocks[1] <= 0:
        # No number of blocks would decide it.
        yield decision.text
    for threshold, result in pair.gate.items():
        if threshold.response != finding.contrast.response or result is not Gate.NOT_DECIDED:
            continue
        if threshold.judged(finding) is Gate.FAILED:
            yield f"{threshold.text}: not certain once all thresholds are counted (Holm)"
    yield from failures.caveats(finding, pair.findings)
    if finding.growth:
        yield finding.growth
    if finding.scope:
        yield f"the result holds {finding.scope}"
    if words := client_words(finding):
        yield words
