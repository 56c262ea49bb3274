"""Aggregates of a workload: what its downloads can support, and nothing more.

A download that was timed out is a lower bound of its latency. Since all time out at one instant,
no earlier than any that was done, a quantile among the done ones is exact all the same; one among
the timed-out, and every mean with one of them, is a bound. Source: Klein and Moeschberger,
Survival Analysis (2003), section 3.2 (censoring of type I).
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from registry.health.downloading import DONE, REFUSED, TIMED_OUT, WAITING, Download

# The fewest of which the largest lies above the 99th percentile with a confidence of 97.5%.
ENOUGH_FOR_P99 = 368
MB, MIB = 10**6, 2**20


def progress(downloads: Sequence[Download]) -> dict[str, int]:
    """Return how many are done, failed and under way, and the bytes that arrived."""
    done = sum(each.outcome == DONE for each in downloads)
    waiting = sum(each.outcome == WAITING for each in downloads)
    return {
        "clients": len(downloads),
        "done": done,
        "failed": len(downloads) - done - waiting,
        "under_way": waiting,
        "bytes": sum(each.bytes for each in downloads),
    }


def summarize(downloads: Sequence[Download], total_s: float) -> dict[str, object]:
    """Return the aggregates; rates count the downloads that were done, over the total duration."""
    done = [each for each in downloads if each.outcome == DONE]
    delivered = sum(each.bytes for each in done)
    return {
        "downloads": len(downloads),
        "successful": len(done),
        "timed_out": sum(each.outcome == TIMED_OUT for each in downloads),
        "failed_otherwise": sum(each.outcome not in (DONE, TIMED_OUT) for each in downloads),
        "success_rate": len(done) / len(downloads),
        "total_duration_s": round(total_s, 6),
        "bytes": delivered,
        "bytes_of_unfinished": sum(each.bytes for each in downloads) - delivered,
        "throughput_bytes_per_s": round(delivered / total_s, 3),
        "throughput_MB_per_s": round(delivered / total_s / MB, 6),
        "throughput_MiB_per_s": round(delivered / total_s / MIB, 6),
        "requests_per_s": round(len(done) / total_s, 6),
        "latency": latency(downloads),
        "outcomes": outcomes(downloads),
    }


def outcomes(downloads: Sequence[Download]) -> dict[str, int]:
    """Return how many downloads ended in each way, with the status of those that were refused."""
    counted: dict[str, int] = {}
    for each in downloads:
        name = f"{each.outcome}_{each.status}" if each.outcome == REFUSED else each.outcome
        counted[name] = counted.get(name, 0) + 1
    return counted


def latency(downloads: Sequence[Download]) -> dict[str, object]:
    """Return mean, median, p99, min and max of the done and the timed-out downloads.

    Those that failed otherwise took no time that says anything of a download, and are left out.
    """
    counted = sorted(
        (each.latency_ms, each.outcome == TIMED_OUT)
        for each in downloads
        if each.outcome in (DONE, TIMED_OUT)
    )
    # The done ones first, whatever a clock says of two that ended at the same instant.
    ordered = sorted(counted, key=lambda pair: pair[1])
    shown: dict[str, object] = {"n": len(ordered), "n_timed_out": sum(cut for _, cut in ordered)}
    if not ordered:
        reason = {"ms": None, "reason": "no download was done or timed out"}
        return {**shown, **dict.fromkeys(("mean", "median", "p99", "min", "max"), reason)}
    values = [value for value, _ in ordered]
    is_any_cut = any(cut for _, cut in ordered)
    return {
        **shown,
        "mean": _figure(fmean(values), is_any_cut),
        "median": _quantile(ordered, 0.5),
        "p99": _p99(ordered),
        "min": _figure(values[0], ordered[0][1]),
        "max": _figure(values[-1], is_any_cut),
    }


def _figure(value_ms: float, is_bound: bool) -> dict[str, object]:
    return {"ms": round(value_ms, 3), "at_least": is_bound}


def _quantile(ordered: Sequence[tuple[float, bool]], share: float) -> dict[str, object]:
    """Return a quantile, between its two neighbours in proportion (type 7, as the published)."""
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1) if place > low else low
    (below, _), (above, is_bound) = ordered[low], ordered[high]
    return _figure(below + (place - low) * (above - below), is_bound)


def _p99(ordered: Sequence[tuple[float, bool]]) -> dict[str, object]:
    if len(ordered) >= ENOUGH_FOR_P99:
        return _quantile(ordered, 0.99)
    return {
        "ms": None,
        "reason": f"a p99 needs {ENOUGH_FOR_P99} downloads, these are {len(ordered)}: theirs would "
        "be the maximum, or nearly so",
    }
