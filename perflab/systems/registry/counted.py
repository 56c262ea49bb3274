"""Columns of a trial of downloads: what the clients got, and what the service counted meanwhile."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

# A column of the table, and where its number stands in the service's answer.
COUNTED: Mapping[str, str] = {
    "waiting_for_thread": "waiting_for_thread",
    "working_threads": "working_threads",
    "most_waiting_for_thread": "most_waiting_for_thread",
    "in_flight": "open",
    "most_in_flight": "most_open",
    "store_created": "store_created",
    "store_discarded": "store_discarded",
    "rss_bytes": "rss_bytes",
    "bytes_read": "bytes_read",
}
MB = 1e6


def download_columns(requests: pd.DataFrame) -> dict[str, float]:
    """Return what all downloads of a trial came to.

    ``total_duration_s`` is from the common start to the last byte of the last download. Where one
    timed out that is not known: then ``total_duration_s_at_least`` is when the last client gave up.
    So with ``fastest_ms``: where none came whole. ``megabytes_per_s`` (10^6 bytes, of downloads
    that came whole) is over that time, and so at most that of all. ``told_*`` is the same once
    more, as whoever makes the load counts it: here the lab itself, else the service's own
    generator (:mod:`perflab.systems.registry.inside`).
    """
    whole = requests["error"] == ""
    begin_ns = int(requests["planned_ns"].min())
    took_s = (int(requests["done_ns"].max()) - begin_ns) / 1e9
    response_ms = (requests["done_ns"] - requests["planned_ns"]) / 1e6
    complete = bool(whole.all())
    columns = {
        "succeeded": float(whole.sum()),
        "total_duration_s": took_s if complete else math.nan,
        "fastest_ms": float(response_ms[whole].min()) if whole.any() else math.nan,
        "megabytes_per_s": float(requests["bytes"][whole].sum()) / MB / took_s,
    }
    if not complete:
        columns["total_duration_s_at_least"] = took_s
    if not whole.any():
        columns["fastest_at_least_ms"] = float(response_ms.min())
    told = ("succeeded", "total_duration_s", "total_duration_s_at_least")
    return columns | {f"told_{name}": columns[name] for name in told if name in columns}


def counted_columns(table: pd.DataFrame, begin_ns: int, end_ns: int) -> dict[str, float]:
    """Return what the counts between begin and end of a load come to; NaN of what is not known.

    The table has t_ns, answered_ns (0: it did not) and the columns of ``COUNTED``; its last row was
    asked after the load. What the service counts up to its highest is taken from that answer: one
    from before a silence says nothing of the silence.
    """
    under_load = table[table["t_ns"].between(begin_ns, end_ns)]
    answered = under_load[under_load["answered_ns"] > 0]
    last = table.iloc[-1] if len(table) and table["answered_ns"].iloc[-1] else None

    def at_last(name: str) -> float:
        return math.nan if last is None else float(last[name])

    return {
        "most_waiting": at_last("most_waiting_for_thread"),
        "most_working": float(answered["working_threads"].max()) if len(answered) else math.nan,
        "most_in_flight": at_last("most_in_flight"),
        "store_connections_made": at_last("store_created"),
        "store_connections_discarded": at_last("store_discarded"),
        "answered_share": len(answered) / len(under_load) if len(under_load) else math.nan,
        **silence_columns(table[table["t_ns"] <= end_ns], end_ns),
    }


def silence_columns(table: pd.DataFrame, end_ns: int) -> dict[str, float]:
    """Return ``longest_silence_ms``, the longest that the service let anyone wait for its counts.

    From the first question that had to wait to the next answer; a question that was given up and
    asked anew is one with the next. With a silence that outlasted the load only what it is at least
    is known.
    """
    longest_ms, since_ns = 0.0, 0
    for t_ns, answered_ns in zip(table["t_ns"], table["answered_ns"], strict=True):
        since_ns = since_ns or int(t_ns)
        if answered_ns:
            longest_ms = max(longest_ms, (int(answered_ns) - since_ns) / 1e6)
            since_ns = 0
    last_ms = max(0.0, (end_ns - since_ns) / 1e6) if since_ns else 0.0
    if last_ms > longest_ms:
        return {"longest_silence_ms": math.nan, "longest_silence_at_least_ms": last_ms}
    return {"longest_silence_ms": longest_ms or math.nan}
