"""Which trials the generator could not vouch for, and why."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pandas as pd

from perflab.analysis.curves.correlation import windows
from perflab.analysis.curves.steady import NEVER, steady_table
from perflab.analysis.trials.summary import measures
from perflab.analysis.trials.windows import message_windows
from perflab.numerals import counted
from perflab.recordings import Remark, Run

WINDOWS = 40
GAP = "\0"
WINDOW_COLUMNS = ["trial_id", "treatment", "start_ns", "throughput_rps", "p50_ms"]
# A version (14.2.1) or an address is none.
NUMBER = re.compile(r"(?<![\w.])[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?(?![.,]?\d)")


def validity_table(run: Run) -> pd.DataFrame:
    """Return one row per treatment, in the order of the record.

    Columns: treatment, label; valid, invalid, failed (trials that were not superseded);
    ``unsettled``, how many of the valid ones never settle (see :func:`steady_trials`);
    ``reason``, all that is held against invalid or failed trials, the most frequent first: reasons
    of one code are told once, with the range of their numbers where they differ in nothing else.
    """
    steady = steady_trials(run)
    restless = steady[steady["kind"] == NEVER].groupby("treatment").size()
    trials = run.trials()
    trials = trials[~trials["superseded"]]
    rows = []
    for treatment in run.record.treatments:
        own = trials[trials["treatment"] == treatment.name]
        counts = {state: int((own["state"] == state).sum()) for state in ("valid", "invalid")}
        failed = int((own["state"] == "failed").sum())
        rows.append(
            {
                "treatment": treatment.name,
                "label": treatment.label or treatment.name,
                **counts,
                "failed": failed,
                "unsettled": int(restless.get(treatment.name, 0)),
                "reason": told(own["reasons"]),
            }
        )
    return pd.DataFrame(rows)


def steady_trials(run: Run) -> pd.DataFrame:
    """Return, for every valid trial, whether and when its measured stage settled.

    Each trial is cut into some 40 windows of equal width; columns as of
    :func:`perflab.analysis.curves.steady.steady_table`. The cut is told and nothing is cut off: the
    warm-up that the workload asks for lies before the measured stage. What is looked at, and over
    which time, the record says (``steady``).
    """
    if run.missing:
        return steady_table(pd.DataFrame(columns=WINDOW_COLUMNS))
    if run.record.steady.kind:
        return steady_table(message_windows(run, run.record.steady, WINDOWS))
    if not measures(run, "throughput_rps"):
        return steady_table(pd.DataFrame(columns=WINDOW_COLUMNS))
    requests = run.requests()
    spans_ns = [
        float(own["done_ns"].max() - own["planned_ns"].min())
        for _, own in requests[requests["done_ns"] > 0].groupby("trial_id")
    ]
    if not spans_ns:
        return steady_table(pd.DataFrame(columns=WINDOW_COLUMNS))
    width_s = max(0.001, float(pd.Series(spans_ns).median()) / 1e9 / WINDOWS)
    return steady_table(windows(requests, run.samples(), [], width_s))


def told(trials: Iterable[Sequence[Remark]]) -> str:
    """Return reasons or warnings of several trials: each code once, and how many trials had it."""
    texts: dict[str, list[str]] = {}
    found: dict[str, int] = {}
    for reasons in trials:
        for reason in reasons:
            texts.setdefault(reason.code, []).append(reason.text)
        for code in dict.fromkeys(reason.code for reason in reasons):
            found[code] = found.get(code, 0) + 1
    often = sorted(found.items(), key=lambda item: -item[1])
    return "; ".join(f"{_summed(texts[code])} ({counted(n, 'trial')})" for code, n in often)


def _summed(texts: Sequence[str]) -> str:
    """Return the wording that most have, with ranges for its numbers; say where others differ.

    Of texts of several lines the first: behind it stand a service's last log lines.
    """
    wordings: dict[str, list[list[str]]] = {}
    for text in (each.partition("\n")[0] for each in texts):
        wordings.setdefault(NUMBER.sub(GAP, text), []).append(NUMBER.findall(text))
    wording, numbers = max(wordings.items(), key=lambda item: len(item[1]))
    words = wording.split(GAP)
    ranges = [*(_range(values) for values in zip(*numbers, strict=True)), ""]
    filled = "".join(text for pair in zip(words, ranges, strict=True) for text in pair)
    return filled + (", or alike" if len(wordings) > 1 else "")


def _range(values: Sequence[str]) -> str:
    ordered = sorted(set(values), key=lambda value: float(value.replace(",", "")))
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"
