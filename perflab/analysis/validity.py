"""Which trials are not valid and why, and why numbers are absent."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, get_args

import pandas as pd

from perflab.recordings import Remark, Response, Run, typical
from perflab.recordings.responses import (
    MAX_CLIENT_SHARE,
    MEMORY_UNKNOWN,
    at_least_column,
    client_column,
    without_client,
)
from perflab.recordings.schema import TrialState, is_imported
from perflab.recordings.tables import NOT_JUDGED
from perflab.statistics.in_words import counted
from perflab.statistics.quantiles import Estimate, across_trials


def summary_table(run: Run) -> pd.DataFrame:
    """Return one row per treatment, in the order of the record.

    Columns: treatment, label; valid, invalid, failed (numbers of trials that were not
    superseded); requests, errors (sums over valid trials); for every typical response of the run
    (see :func:`measured_responses`) its typical value over valid trials with ``_low``, ``_high``
    (95%, NaN if n is too small) and ``_n`` (trials that have it); ``flush_p50_us_min`` and ``_max``
    (range of the trials' median flushes). In imported results all trials take the place of valid
    ones, and ``not judged`` counts them; requests and errors are None if the tool has no counts.
    """
    trials = run.current_trials()
    responses = measured_responses(run)
    imported = is_imported(run.record)
    rows = []
    for treatment in run.record.treatments:
        group = trials[trials["treatment"] == treatment.name]
        valid = group[group["state"] == (NOT_JUDGED if imported else "valid")]
        rows.append(
            {
                "treatment": treatment.name,
                "label": treatment.label or treatment.name,
                **_state_counts(group),
                **({NOT_JUDGED: len(valid)} if imported else {}),
                "requests": _total(valid["requests"]),
                "errors": _total(valid["errors"]),
                **typical_values(valid, responses),
                "flush_p50_us_min": float(valid["flush_p50_us"].min()),
                "flush_p50_us_max": float(valid["flush_p50_us"].max()),
            }
        )
    return pd.DataFrame(rows)


def _total(counts: pd.Series[Any]) -> int | None:
    """Return the sum of counts; None if an imported count is unknown (-1)."""
    return None if (counts < 0).any() else int(counts.sum())


def measured_responses(run: Run) -> dict[str, Response]:
    """Return the declared typical responses that were measured in some trial, by column.

    If nothing was measured, these are all declared typical responses.
    """
    trials = run.trials()
    declared = typical(run.record, map(str, trials.columns))
    measured = {name: response for name, response in declared.items() if _is_known(trials, name)}
    return measured or declared


def _is_known(trials: pd.DataFrame, name: str) -> bool:
    """Return whether some trial has a value or a lower bound of a response."""
    return bool(trials[name].notna().any()) or not math.isnan(least_value(trials, name))


def measures(run: Run, response: str) -> bool:
    """Return whether some trial of the run has a value of a response."""
    trials = run.trials()
    return response in trials.columns and bool(trials[response].notna().any())


def typical_values(valid: pd.DataFrame, names: Iterable[str]) -> dict[str, Any]:
    """Return :func:`typical_value` of columns, each with ``_low``, ``_high`` (95%) and ``_n``."""
    row: dict[str, Any] = {}
    for name in names:
        found = typical_value(valid, name)
        row |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
        row[f"{name}_n"] = found.n
    return row


def typical_value(valid: pd.DataFrame, name: str) -> Estimate:
    """Return the typical value of a response over trials, with its 95% interval.

    Where more than a tenth of a value may be the client's own, the interval holds it without that
    part, too. If a trial has only a lower bound, the value is NaN and ``low`` is that bound.
    """
    least = least_value(valid, name)
    if not math.isnan(least):
        return Estimate(math.nan, least, math.nan, len(valid), supported=False, method="bound")
    estimate = across_trials(valid[name].to_numpy(float))
    less = across_trials(_without_client(valid, name).to_numpy(float))
    low, high = min(estimate.low, less.low), max(estimate.high, less.high)
    return replace(estimate, low=low, high=high)


def _without_client(valid: pd.DataFrame, name: str) -> pd.Series[float]:
    """Return the trials' values, less what may be the client's own where that is much."""
    values, client = valid[name], valid.get(client_column(name))
    if client is None or not (client.abs() > MAX_CLIENT_SHARE * values).any():
        return values
    less: pd.Series[float] = without_client(values, client)
    return less


def least_value(valid: pd.DataFrame, name: str) -> float:
    """Return the lower bound of a response in all trials; NaN if no trial has only a bound."""
    column = at_least_column(name)
    if column not in valid or not valid[column].notna().any():
        return math.nan
    known = valid[name].fillna(valid[column]) if name in valid else valid[column]
    return float(known.min())


GAP = "\0"
# A version (14.2.1) or an address is no number.
NUMBER = re.compile(r"(?<![\w.])[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?(?![.,]?\d)")
# The warnings that take numbers from a valid trial; their texts name the numbers.
HOLD_BACK = ("load.censored", "generator.client_time")
NOT_MEASURED = "service.not_measured"
TOO_FEW = "too few requests or messages for it, or none"


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


def why_unmeasured(valid: pd.DataFrame, response: Response) -> str:
    """Return why valid trials have no value of a response; empty if all have one."""
    without = valid[valid[response.name].isna()] if response.name in valid else valid.head(0)
    if without.empty:
        return ""
    of = f"{len(without)} of {counted(len(valid), 'valid trial')}"
    return f"no {response.title} from {of}: {_held_back(without, response)}"


def _held_back(trials: pd.DataFrame, response: Response) -> str:
    warnings = [
        [warning for warning in of_trial if _concerns(warning, response)]
        for of_trial in trials["warnings"]
    ]
    return summed_reasons(warnings) or TOO_FEW


def _concerns(remark: Remark, response: Response) -> bool:
    if remark.code == NOT_MEASURED:
        return re.search("cpu|memory", response.name) is not None
    if remark.code == MEMORY_UNKNOWN:
        return "memory" in response.name
    # For ``service_p99_ms`` this is ``p99``.
    number = response.name.removesuffix("_ms").rpartition("_")[2]
    return remark.code in HOLD_BACK and bool(re.search(rf"\b{re.escape(number)}\b", remark.text))
