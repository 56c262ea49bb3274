"""The summary of a load as CSV: a row for every name of scripted users, and one for all."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from perflab.percentiles import OF_LOADS

TIMES = (*(f"p{share:g}" for share in OF_LOADS), "max", "mean")
# As Locust has it, so that sheets made for one read the other.
ALL = "Aggregated"


def csv_text(shown: Mapping[str, Any]) -> str:
    """Return a summary (see ``report.summary``) as CSV.

    Columns: name, requests, errors, successes_per_s, bytes_received, p50_ms to p99.9_ms, max_ms,
    mean_ms (response times of successes; empty where the sample is too small, or where requests
    that were cut off could move them), valid; at_least (what those are at least, in ms:
    ``p99>=1000 mean>=13.7``), client_ms (how much may be the client's own time, where that is more
    than a tenth: ``p50<=0.03``).
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    times = [f"{name}_ms" for name in TIMES]
    head = ("name", "requests", "errors", "successes_per_s", "bytes_received", *times)
    writer.writerow((*head, "valid", "at_least", "client_ms"))
    for row in (*shown["by_name"], {**shown, "name": ALL}):
        values = [row["response_time_ms"][name] for name in TIMES]
        writer.writerow(
            [
                row["name"],
                row["requests"],
                row["errors"],
                _number(row["throughput_rps"]),
                row["bytes_received"],
                *map(_number, values),
                str(shown["valid"]).lower(),
                _listed(row["response_time_at_least_ms"], ">="),
                _listed(row["response_time_client_ms"], "<="),
            ]
        )
    return out.getvalue()


def _listed(values: Mapping[str, float], sign: str) -> str:
    return " ".join(f"{name}{sign}{value:.6g}" for name, value in values.items())


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
