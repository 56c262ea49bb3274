"""Locust: the statistics that it writes as CSV (``--csv PREFIX``: ``PREFIX_stats.csv``).

Source: the Locust manual, "Retrieve test statistics in CSV format"; files that Locust 2 wrote.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from perflab.imports.reading import refused, rows_of
from perflab.imports.told import Told, share_name

_COUNTS = ("Name", "Request Count", "Failure Count", "Requests/s")
_TIMES = {
    "mean": "Average Response Time", "min": "Min Response Time", "max": "Max Response Time",
}  # fmt: skip
_SHARE = re.compile(r"(\d{1,2}(?:\.\d+)?)%")
ALL = "Aggregated"


def fits(head: str) -> bool:
    """Say whether a file begins as the statistics of a load, all of it."""
    names = head.partition("\n")[0].strip().replace('"', "").split(",")
    return {*_COUNTS} <= {*names}


def read(path: Path) -> Told:
    """Read the statistics of one load."""
    rows = [row for row in rows_of(path, (*_COUNTS, *_TIMES.values())) if row["Name"] == ALL]
    if len(rows) != 1:
        raise refused(path, 0, f"it has {len(rows)} rows '{ALL}', not one; is it cut off?")
    (row,) = rows
    requests = row.whole("Request Count")
    rate = row.number("Requests/s")
    shares = {
        share_name(float(found[1])): name for name in row if (found := _SHARE.fullmatch(name))
    }
    times = {ours: row.number(name) for ours, name in {**_TIMES, **shares}.items()}
    if requests == 0:
        # Locust writes 0 for times that there are none of.
        times = dict.fromkeys(times, math.nan)
    return Told(
        requests=requests,
        failures=row.whole("Failure Count"),
        duration_s=requests / rate if rate > 0 else math.nan,
        throughput_rps=rate,
        times_ms=times,
    )
