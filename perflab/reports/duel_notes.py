"""What limits the results of a duel: trials that do not count, noise, blocks and thresholds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from perflab.analysis.doubts.block_trend import rise_within
from perflab.analysis.evaluation import Finding
from perflab.analysis.findings import client_words
from perflab.analysis.gates.not_compared import is_compared
from perflab.analysis.noise import DOUBTS
from perflab.analysis.results import Compared, Gate
from perflab.analysis.validity import (
    Short,
    listed_reasons,
    short_of_requests,
    why_unmeasured,
)
from perflab.recordings import Run
from perflab.recordings.responses import SHARED_STORE
from perflab.reports import failures
from perflab.reports.duel_pairs import Pair, name_of, treatments_of
from perflab.statistics.comparison import USUAL_P
from perflab.statistics.families import blocks_for_one
from perflab.statistics.in_words import counted
from perflab.statistics.mean_intervals import SMALLEST_N, SMALLEST_SIGNED_RANK

MOST_REASONS = 2
# Remarks that stand elsewhere.
BESIDE = (*DOUBTS, SHARED_STORE)


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
    if few := [count for count in counts if SMALLEST_N <= count < SMALLEST_SIGNED_RANK]:
        lines.append(
            f"{counted(min(few), 'block')}: these intervals hold only if the noise is normal; "
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
    short: dict[str, Short] = {}
    for pair in pairs:
        for response, finding in pair.findings.items():
            name = f"{pair.new} " * (len(pairs) > 1) + name_of(response)
            if (lack := _short(run, finding)) is not None:
                short[name] = lack
            for text in () if lack else _caveats(run, pair, finding):
                names_by_text.setdefault(text, []).append(name)
            is_open = failures.is_open(finding, pair.findings)
            if finding.decision is not None and finding.decision.blocks[1] > 0 and not is_open:
                blocks[name] = finding.decision.blocks[1]
    for text, names in names_by_text.items():
        yield f"{', '.join(names)}: {text}"
    if short:
        yield _short_text(short)
    if blocks:
        yield (
            f"{', '.join(blocks)}: not decided; a fresh run of up to {max(blocks.values()):,} "
            "blocks (--blocks) would decide, if the ratios are those seen"
        )


def _short(run: Run, finding: Finding) -> Short | None:
    """Return how many requests a percentile needs that was not measured, if that is why."""
    if finding.effect is not None or finding.contrast.set_by_load:
        return None
    valid = run.valid_trials()
    valid = valid[valid["treatment"].isin(treatments_of(run, finding))]
    return short_of_requests(valid, finding.response, run.record.parameters.get("duration_s"))


def _short_text(short: Mapping[str, Short]) -> str:
    """Return which percentiles have too few requests, and the duration that all of them need."""
    groups: dict[str, list[str]] = {}
    for name, each in short.items():
        groups.setdefault(f"{each.fewest} of the {each.needed}", []).append(name)
    texts = [f"{counts} for {', '.join(names)}" for counts, names in groups.items()]
    durations = [each.duration_s for each in short.values() if each.duration_s]
    way_out = f": --duration {max(durations)}" if durations else ""
    return f"a trial has too few requests for percentiles ({'; '.join(texts)}){way_out}"


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
    thresholds = sum(len(pair.gate) for pair in pairs)
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
            f"count; a gate of {counted(thresholds, 'threshold')} needs "
            f"{blocks_for_one(thresholds, sides=1)} to fail"
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
    if decision is not None and decision.result is Compared.NOT_DECIDED and decision.blocks[1] <= 0:
        # No number of blocks would decide it.
        yield decision.text
    for threshold, result in pair.gate.items():
        if threshold.response != finding.contrast.response or result is not Gate.NOT_DECIDED:
            continue
        if threshold.judged(finding) is Gate.FAILED:
            yield f"{threshold.text}: not certain once all thresholds are counted (Holm)"
        elif finding.effect and threshold.of_effect(finding.effect) is Gate.PASSED:
            yield f"{threshold.text}: not decided, because refused trials' values may cross it"
    yield from failures.caveats(finding, pair.findings)
    if finding.growth:
        yield finding.growth
    if finding.scope:
        yield f"the result holds {finding.scope}"
    if words := client_words(finding):
        yield words
