"""Which trials are not valid and why, and why numbers are absent."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

import pandas as pd

from perflab.recordings import Remark, Response, Run
from perflab.recordings.responses import (
    FAILURES,
    MEMORY_UNKNOWN,
    of_request,
    resolution_column,
    split_request,
)
from perflab.recordings.schema import TrialState
from perflab.statistics.in_words import counted
from perflab.statistics.quantiles import needed_n

GAP = "\0"
# A version (14.2.1) or an address is no number.
NUMBER = re.compile(r"(?<![\w.])[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?(?![.,]?\d)")
# The warnings that take numbers from a valid trial; their texts name the numbers.
HOLD_BACK = ("load.censored", "generator.client_time")
NOT_MEASURED = "service.not_measured"
TOO_FEW = "too few requests or messages for it, or none"
# A percentile of the requests; a longer trial has more of them, but for chance.
PERCENTILE = re.compile(r"(?:service_)?p(\d+)_ms")
LONGER = 1.1


def validity_table(run: Run) -> pd.DataFrame:
    """Return one row per treatment, in the order of the record.

    Columns: treatment, label; valid, invalid, failed (trials that were not superseded);
    ``reason``, the reasons of invalid and failed trials, the most frequent first: reasons of one
    code appear once, with the range of their numbers if they differ in nothing else.
    """
    trials = run.current_trials()
    rows = []
    for treatment in run.record.treatments:
        group = trials[trials["treatment"] == treatment.name]
        rows.append(
            {
                "treatment": treatment.name,
                "label": treatment.label or treatment.name,
                **_state_counts(group),
                "reason": summed_reasons(group["reasons"]),
            }
        )
    return pd.DataFrame(rows)


def _state_counts(trials: pd.DataFrame) -> dict[str, int]:
    return {state: int((trials["state"] == state).sum()) for state in get_args(TrialState)}


def summed_reasons(trials: Iterable[Sequence[Remark]]) -> str:
    """Return reasons or warnings of several trials in one text; see :func:`listed_reasons`."""
    return "; ".join(listed_reasons(trials))


def listed_reasons(trials: Iterable[Sequence[Remark]]) -> list[str]:
    """Return reasons or warnings of several trials: each code once, with its number of trials.

    The most frequent code is the first.
    """
    texts: dict[str, list[str]] = {}
    counts: dict[str, int] = {}
    for reasons in trials:
        for reason in reasons:
            texts.setdefault(reason.code, []).append(reason.text)
        for code in dict.fromkeys(reason.code for reason in reasons):
            counts[code] = counts.get(code, 0) + 1
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return [f"{_summed(texts[code])} ({counted(n, 'trial')})" for code, n in ordered]


def _summed(texts: Sequence[str]) -> str:
    """Return the most frequent wording, with ranges for its numbers, and note if others differ.

    Only the first line of a text counts: the others are a service's last log lines.
    """
    wordings: dict[str, list[list[str]]] = {}
    for text in (text.partition("\n")[0] for text in texts):
        wordings.setdefault(NUMBER.sub(GAP, text), []).append(NUMBER.findall(text))
    wording, numbers = max(wordings.items(), key=lambda item: len(item[1]))
    words = wording.split(GAP)
    ranges = [*(_range(values) for values in zip(*numbers, strict=True)), ""]
    filled = "".join(text for pair in zip(words, ranges, strict=True) for text in pair)
    return filled + (", or alike" if len(wordings) > 1 else "")


def _range(values: Sequence[str]) -> str:
    ordered = sorted(set(values), key=lambda value: float(value.replace(",", "")))
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"


def why_absent(run: Run, treatments: Collection[str], response: Response) -> str:
    """Return why trials of these treatments have no value of a response; empty if all have one."""
    trials = run.current_trials()
    chosen = trials[trials["treatment"].isin(treatments)]
    valid = chosen[chosen["state"] == "valid"]
    unusable = chosen[chosen["state"] != "valid"]
    parts = []
    if len(unusable):
        of = f"{len(unusable)} of {counted(len(chosen), 'trial')}"
        parts.append(f"{of} may not be used: {summed_reasons(unusable['reasons'])}")
    return "; ".join(filter(None, [*parts, why_unmeasured(valid, response)]))


@dataclass(frozen=True)
class Short:
    """How many requests a percentile needs, and the fewest of a trial (a duration, s, would do)."""

    fewest: int
    needed: int
    duration_s: int | None = None


def why_unmeasured(valid: pd.DataFrame, response: Response) -> str:
    """Return why valid trials have no value of a response; empty if all have one."""
    without = _without(valid, response)
    if without.empty:
        return ""
    of = f"{len(without)} of {counted(len(valid), 'valid trial')}"
    why = summed_reasons(_held_back(without, response))
    if not why and (short := short_of_requests(valid, response)):
        why = f"{short.fewest} of the {short.needed} requests it needs"
    return f"no {response.title} from {of}: {why or TOO_FEW}"


def short_of_requests(
    valid: pd.DataFrame, response: Response, duration_s: float | None = None
) -> Short | None:
    """Return how many requests valid trials lack for a percentile, if that is all they lack.

    With their duration it has the one that would do.
    """
    trials = _without(valid, response)
    base, request = split_request(response.name)
    # Of one of several requests a trial has no count, but the step of its share of failures.
    column = resolution_column(of_request(FAILURES, request)) if request else "requests"
    percentile = PERCENTILE.fullmatch(base)
    if not percentile or column not in trials or any(_held_back(trials, response)):
        return None
    counts = 1 / trials[column] if request else trials[column]
    needed, fewest = needed_n(float(percentile[1])), counts.min()
    # A trial that has enough lacks the number for another reason.
    if not (fewest > 0 and counts.max() < needed):
        return None
    enough_s = math.ceil(LONGER * duration_s * needed / fewest) if duration_s else None
    return Short(round(fewest), needed, enough_s)


def _without(valid: pd.DataFrame, response: Response) -> pd.DataFrame:
    return valid[valid[response.name].isna()] if response.name in valid else valid.head(0)


def _held_back(trials: pd.DataFrame, response: Response) -> list[list[Remark]]:
    return [
        [warning for warning in of_trial if _concerns(warning, response)]
        for of_trial in trials["warnings"]
    ]


def _concerns(remark: Remark, response: Response) -> bool:
    base, _ = split_request(response.name)
    if remark.code == NOT_MEASURED:
        return re.search("cpu|memory", base) is not None
    if remark.code == MEMORY_UNKNOWN:
        return "memory" in base
    # For ``service_p99_ms`` this is ``p99``.
    number = base.removesuffix("_ms").rpartition("_")[2]
    return remark.code in HOLD_BACK and bool(re.search(rf"\b{re.escape(number)}\b", remark.text))
