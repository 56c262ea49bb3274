"""What a run of variants says: its answers, and what stands above and below them."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from perflab.analysis.doubts.still_warming import still_warming
from perflab.analysis.doubts.unseen_answers import failing_alike, unlike, unseen_answers
from perflab.analysis.effect_words import refused_words
from perflab.analysis.evaluation import Finding
from perflab.analysis.gates.first_line import VARIANT, are_of_a_duel
from perflab.analysis.results import DIFFERENT, Compared
from perflab.recordings import Run
from perflab.recordings.responses import SHARED_STORE, STORE_ROWS
from perflab.reports.causes import why_lines
from perflab.reports.duel_answer import THROUGHPUT, TIMES, answer, in_the_answer
from perflab.reports.duel_notes import notes
from perflab.reports.duel_pairs import Pair, name_of, pairs_of, treatments_of

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
    return [*above_the_answer(run), *answers, *beside, *notes(run, pairs)]


def above_the_answer(run: Run) -> list[str]:
    """Return what a run of variants says before its answer; nothing for other runs."""
    return [*still_warming(run), *other_answers(run)] if are_variants(run) else []


def answer_lines(run: Run, pair: Pair, is_only: bool = True) -> list[str]:
    """Return the answer; below it what it is with refused trials if they may change it, and why."""
    told = [(finding, refused_words(finding)) for finding in in_the_answer(pair.findings)]
    refused = [f"{name_of(one.contrast.response)}: {words}" for one, words in told if words]
    why = why_lines(run, *treatments_of(run, next(iter(pair.findings.values()))))
    return [answer(pair, is_only), *refused, *why]


def beside_the_answer(run: Run, pairs: Sequence[Pair]) -> list[str]:
    """Return what stands right below the answers: stores that are shared, or not equally full."""
    shared = [item.text for item in run.record.warnings if item.code == SHARED_STORE]
    return [*shared, *(text for pair in pairs if (text := _rows_apart(run, pair)))]


def _rows_apart(run: Run, pair: Pair) -> str:
    """Return that variants wrote unlike much; often the faster one, into a fuller store."""
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
    # Faster is who answers faster, as the first line has it.
    results = [pair.findings[name].verdict.result for name in (*TIMES, THROUGHPUT)
               if name in pair.findings]  # fmt: skip
    is_faster = next(each for each in results if each in DIFFERENT) is Compared.BETTER
    is_fuller = new[STORE_ROWS] > old[STORE_ROWS]
    told = (
        "the faster side measures a fuller store"
        if is_fuller == is_faster
        else "the stores differ in rows"
    )
    return (
        f"rows in the store at the end of a trial: {new[STORE_ROWS]:,.0f} of {pair.new}, "
        f"{old[STORE_ROWS]:,.0f} of {pair.old}: the load writes, and {told}; {way_out} gives "
        "both equal work"
    )


def variants_answer(run: Run, findings: Sequence[Finding]) -> str:
    """Return the answer of a run of two variants in one line; of more of them, nothing."""
    pairs = pairs_of(findings, (), ())
    return "; ".join([*still_warming(run), answer(pairs[0])]) if len(pairs) == 1 else ""


def other_answers(run: Run) -> list[str]:
    """Return a sentence for each variant whose answers are others: under load, or than the first's.

    Where every variant mostly answers with an error, that is told, too.

    What a variant answers under load is held against all checks before the loads
    (:func:`perflab.analysis.doubts.unseen_answers.unseen_answers`).

    Every trial has the length and the digest of one body. Where a variant's bodies differ among
    themselves (they may hold the time), lengths that do not overlap tell it from the baseline.
    """
    trials, under_load = run.trials(), [*unseen_answers(run).values(), *failing_alike(run)]
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
