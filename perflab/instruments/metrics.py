"""What a service counts of itself: its metrics in Prometheus's text format.

Counters only grow, and so do the sums and numbers of histograms and summaries; what a load adds to
them is what is told. Levels (gauges) are left out, and what the process metrics say, which the
kernel's accounts have. Source: prometheus.io, Exposition formats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import NamedTuple

from perflab.credentials import masked
from perflab.errors import StackError
from perflab.stacks.asking import exchange

ANSWER_WITHIN_S = 5.0
OF_THE_PROCESS = "process_"
SECONDS = ("_seconds", "_seconds_total")
NOTHING = float("nan")


class Total(NamedTuple):
    """What was counted since the service began: a number, and a time in s (NaN: has none)."""

    number: float
    time_s: float


def totals(port: int, path: str) -> dict[str, Total]:
    """Return what the service on a port of this machine has counted so far, by name and labels.

    StackError where it does not answer, or with another format.
    """
    status, text = exchange(port, "GET", path, None, ANSWER_WITHIN_S)
    if status != HTTPStatus.OK:
        raise StackError(f"GET {path} is answered with status {status}, not 200")
    try:
        return totals_in(text)
    except (ValueError, LookupError):
        raise StackError(f"GET {path} is answered with no text of Prometheus's format") from None


def totals_in(text: str) -> dict[str, Total]:
    """Return the totals of a text; ValueError where it has another format."""
    # Late: only a service with metrics needs it.
    from prometheus_client.parser import text_string_to_metric_families

    found: dict[str, Total] = {}
    for family in text_string_to_metric_families(text):
        if family.name.startswith(OF_THE_PROCESS):
            continue
        for sample in family.samples:
            is_time = sample.name.removesuffix("_sum").endswith(SECONDS)
            part = sample.name.removeprefix(family.name)
            if family.type == "counter" and part in ("", "_total"):
                name, is_sum = sample.name, is_time
            elif family.type in ("histogram", "summary") and part in ("_sum", "_count"):
                name = family.name if is_time or part == "_count" else sample.name
                is_sum = is_time and part == "_sum"
            else:
                continue
            labels = ",".join(f"{label}={value}" for label, value in sorted(sample.labels.items()))
            entry = masked(f"{name}{{{labels}}}" if labels else name)
            number, time_s = found.get(entry, Total(NOTHING, NOTHING))
            value = float(sample.value)
            found[entry] = Total(number, value) if is_sum else Total(value, time_s)
    return found


def increments(
    before: Mapping[str, Total], after: Mapping[str, Total]
) -> Iterator[tuple[str, Total]]:
    """Yield by how much each total has grown; one that fell is of another process, and left out."""
    for entry, total in after.items():
        # A label that was not there before had counted nothing.
        first = before.get(entry, Total(0.0, 0.0))
        grown = Total(total.number - first.number, total.time_s - first.time_s)
        if not any(value < 0 for value in grown):
            yield entry, grown
