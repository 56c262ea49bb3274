"""vegeta: its report (``vegeta report -type=json``), its requests (``vegeta encode -to json``).

Sources: ``lib/metrics.go`` and ``lib/results.go`` of vegeta, files that vegeta 12 wrote.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from perflab.imports.instants import epoch_ns, utc_text
from perflab.imports.json_numbers import Numbers
from perflab.imports.reading import document_of, lines_of, record_of, refused
from perflab.imports.told import NS_PER_MS, RequestRows, Told, share_name

NS_PER_S = 1e9
_SHARE = re.compile(r"(\d{1,2}(?:\.\d+)?)th")


def fits_report(head: str) -> bool:
    """Say whether a file begins as vegeta's report in JSON."""
    return head.lstrip().startswith("{") and '"latencies"' in head and '"50th"' in head


def fits_results(head: str) -> bool:
    """Say whether a file begins with a request of vegeta's in JSON."""
    first = head.lstrip().partition("\n")[0]
    return first.startswith("{") and all(
        f'"{name}"' in first for name in ("seq", "latency", "timestamp", "code")
    )


def read_report(path: Path) -> Told:
    """Read the report of one load; nanoseconds become milliseconds."""
    told = Numbers(path, document_of(path))
    requests = told.count("requests")
    share = told.number("success")
    if share > 1:
        raise refused(path, 0, f"'success' is {share:g}; it is a share of 1")
    names = {"mean": "mean", "min": "min", "max": "max"}
    for name in told.inside("latencies"):
        if match := _SHARE.fullmatch(name):
            names[share_name(float(match[1]))] = name
    nothing = requests == 0
    return Told(
        requests=requests,
        failures=round(requests * (1 - share)),
        duration_s=told.number("duration") / NS_PER_S,
        throughput_rps=told.number("throughput"),
        times_ms={
            ours: math.nan if nothing else told.told("latencies", name) / NS_PER_MS
            for ours, name in names.items()
        },
        settings=_settings(told),
    )


def _settings(told: Numbers) -> dict[str, str]:
    rate = told.told("rate")
    return {} if math.isnan(rate) else {"rate": f"{rate:.6g}/s"}


def read_results(path: Path) -> Told:
    """Read vegeta's requests, each a line."""
    rows = RequestRows()
    base_ns = 0
    for number, line in lines_of(path):
        if not line.strip():
            continue
        record = record_of(path, number, line)
        told = Numbers(path, record, number)
        try:
            start_ns = epoch_ns(record.get("timestamp"))
        except ValueError as error:
            raise refused(path, number, str(error)) from None
        base_ns = base_ns or start_ns
        start_ms = (start_ns - base_ns) / NS_PER_MS
        code, words = told.count("code"), str(record.get("error") or "")
        failed = bool(words) or not 200 <= code < 400
        outcome = str(code) if code else words
        end_ms = start_ms + told.number("latency") / NS_PER_MS
        rows.add(start_ms, math.nan, end_ms, told.told("bytes_in"), outcome, failed)
    if not len(rows):
        raise refused(path, 0, "it has no request")
    return rows.told({"began": utc_text(base_ns / NS_PER_S)})
