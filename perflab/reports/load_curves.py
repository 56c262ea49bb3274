"""What the pictures of one load show: times and rates in equal parts of it, and their distribution.

Pure: arrays of a load's rows come in, small tables go out.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from perflab.load.report import histogram
from perflab.load.result import LoadResult
from perflab.load.times import times_of
from perflab.percentiles import needed_n, percentile

LEAST_PARTS, MOST_PARTS = 10, 60
LEAST_PART_S = 0.1
BINS = 40
SHARES = (50, 95, 99)


def over_time(result: LoadResult) -> pd.DataFrame:
    """Return a row for each part of the load's measured time.

    Columns: ``at_s`` and ``until_s`` since its begin, ``successes_per_s`` and ``failures_per_s`` by
    the end of requests, ``p50``, ``p95`` and ``p99`` (ms) of the successes that were planned in it;
    NaN where they are too few to have one.
    """
    begin_ns, end_ns = result.window
    length_s = (end_ns - begin_ns) / 1e9
    if length_s <= 0:
        return pd.DataFrame()
    # So few that each can have a p95, if there are enough requests for that.
    supported_parts = max(LEAST_PARTS, len(result.measured(_planned)) // needed_n(95))
    parts = int(np.clip(length_s // LEAST_PART_S, 1, min(MOST_PARTS, supported_parts)))
    edges = np.linspace(begin_ns, end_ns, parts + 1)
    good = [rows[rows["error"] == 0] for _, rows in result.measured_by_worker()]
    bad = [rows["done_ns"][rows["error"] != 0] for _, rows in result.measured_by_worker()]
    planned = _joined([rows["planned_ns"] for rows in good])
    done = _joined([rows["done_ns"] for rows in good])
    part_s = length_s / parts
    table = {
        "at_s": (edges[:-1] - begin_ns) / 1e9,
        "until_s": (edges[1:] - begin_ns) / 1e9,
        "successes_per_s": np.histogram(done, edges)[0] / part_s,
        "failures_per_s": np.histogram(_joined(bad), edges)[0] / part_s,
    }
    place = np.clip(np.searchsorted(edges, planned, "right") - 1, 0, parts - 1)
    order = np.argsort(place, kind="stable")
    pieces = np.split((done - planned)[order], np.searchsorted(place[order], range(1, parts)))
    for share in SHARES:
        table[f"p{share}"] = np.array([percentile(piece, share) / 1e6 for piece in pieces])
    return pd.DataFrame(table)


def distribution(result: LoadResult) -> pd.DataFrame:
    """Return counts of the successes' response times in bins of equal ratio (ms)."""
    return pd.DataFrame(histogram(times_of(result).known, BINS))


def supported(n: int) -> str:
    """Say which percentiles so many successes support."""
    known = [f"p{share:g}" for share in (50, 90, 95, 99, 99.9) if n >= needed_n(share)]
    if not known:
        return f"{n} successes: too few for any percentile (the median needs {needed_n(50)})"
    return f"{n} successes: enough for {', '.join(known)}"


def _planned(rows: np.ndarray) -> np.ndarray:
    planned: np.ndarray = rows["planned_ns"]
    return planned


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
