"""A finished load in numbers: one object for programs, one table for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import stats

from perflab.load.columns import PHASE, ROW, phases, words
from perflab.load.outcome import ERRORS, STAGES
from perflab.load.result import LoadResult
from perflab.load.selfcheck import SelfCheck
from perflab.load.workload import OpenLoop, Workload

# Smallest samples for which a 95 % order-statistic interval of the percentile exists at all:
# 1 - p**n >= 0.975. Below them a percentile is refused.
SMALLEST_N = {50: 6, 90: 36, 95: 72, 99: 368}
ROWS_PER_GROUP = 1 << 20
GROWTH_WINDOWS = 10
GROWTH_TAU = 0.6


def percentiles_ms(values_ns: np.ndarray, shares: tuple[int, ...]) -> dict[str, float | None]:
    """Return percentiles in ms; None where the sample is too small to have one."""
    known = [share for share in shares if len(values_ns) >= SMALLEST_N[share]]
    found = np.percentile(values_ns, known) / 1e6 if known else []
    values = dict(zip(known, map(float, found), strict=True))
    return {f"p{share}": values.get(share) for share in shares}


def summary(result: LoadResult, workload: Workload, found: SelfCheck) -> dict[str, Any]:
    """Return what a load showed, over the requests of its measure stage.

    Times are those of successes, in ms: ``response_time_ms`` from the planned instant,
    ``service_time_ms`` from sending. Throughput counts successes that were done between the first
    planned instant and the last end.
    """
    errors = result.measured(lambda rows: rows["error"])
    total, succeeded = len(errors), int((errors == 0).sum())
    response = result.measured(lambda rows: _spent(rows, "planned_ns", "done_ns"))
    seconds = _seconds(result)
    counts = np.bincount(errors, minlength=len(ERRORS))
    statuses, status_counts = np.unique(
        result.measured(lambda rows: rows["status"]), return_counts=True
    )
    warnings = list(found.warnings)
    if succeeded < total:
        warnings.append("times are those of successful requests only")
    small = [f"p{share}" for share, least in SMALLEST_N.items() if succeeded < least]
    if small:
        warnings.append(f"n too small for {', '.join(small)} (n = {succeeded})")
    return {
        "requests": total,
        "errors": total - succeeded,
        "errors_by_class": {
            ERRORS[code]: int(count) for code, count in enumerate(counts) if code and count
        },
        "statuses": {
            str(status): int(count)
            for status, count in zip(statuses, status_counts, strict=True)
            if status
        },
        "duration_s": seconds,
        "throughput_rps": succeeded / seconds if seconds else None,
        "offered_rps": _offered(total, result, workload),
        "bytes_received": int(result.measured(lambda rows: rows["bytes"]).sum()),
        "response_time_ms": _times(response),
        "service_time_ms": _times(result.measured(lambda rows: _spent(rows, "sent_ns", "done_ns"))),
        "response_growth_ms_per_s": growth_ms_per_s(
            result.measured(lambda rows: rows["planned_ns"][rows["error"] == 0]), response
        ),
        "generator_lag_ms": percentiles_ms(
            result.measured(lambda rows: rows["started_ns"] - rows["planned_ns"]), (50, 99)
        ),
        "connection_wait_ms": percentiles_ms(
            result.measured(lambda rows: _spent(rows, "started_ns", "sent_ns")), (50, 99)
        ),
        "connections_opened": int(result.measured(lambda rows: rows["connect_ns"] > 0).sum()),
        "client_cpu_us_per_request": found.cpu_us_per_request,
        "client_cpu_share": found.cpu_share,
        "client_real_time": result.real_time,
        "client_run_delay_share": found.run_delay_share,
        "loop_delay_p99_ms": found.loop_delay_p99_ms,
        "littles_law_ratio": _number(found.littles_law_ratio),
        "unsent": result.unsent,
        "capped": result.capped,
        "stopped": result.stopped,
        "valid": found.valid,
        "reasons": list(found.reasons),
        "warnings": [*found.reasons, *warnings],
    }


def growth_ms_per_s(planned_ns: np.ndarray, response_ns: np.ndarray) -> float:
    """Return how fast response times grow over a load, in ms per second; 0 without a clear trend.

    Theil-Sen slope of the medians of ten equal windows of planned time, if Kendall's tau between
    window and median is at least 0.6 (one-sided p < 0.01 for ten windows). A queue that grows
    without bound shows itself so long before it misses an objective. Sources: P. K. Sen, JASA
    63(324), 1968; M. G. Kendall, Biometrika 30, 1938.
    """
    if len(planned_ns) < GROWTH_WINDOWS * 5:
        return 0.0
    begin_ns, end_ns = int(planned_ns.min()), int(planned_ns.max())
    window = (planned_ns - begin_ns) * GROWTH_WINDOWS // max(1, end_ns + 1 - begin_ns)
    known = [number for number in range(GROWTH_WINDOWS) if (window == number).any()]
    if len(known) < GROWTH_WINDOWS:
        return 0.0
    middles = np.array([np.median(response_ns[window == number]) for number in known]) / 1e6
    times = np.array(known) * ((end_ns - begin_ns) / GROWTH_WINDOWS / 1e9)
    if np.ptp(middles) == 0 or stats.kendalltau(times, middles).statistic < GROWTH_TAU:
        return 0.0
    return float(stats.theilslopes(middles, times).slope)


def _spent(rows: np.ndarray, since: str, until: str) -> np.ndarray:
    """Return the time between two instants of the successes, in ns."""
    good = rows["error"] == 0
    spent: np.ndarray = rows[until][good] - rows[since][good]
    return spent


def _seconds(result: LoadResult) -> float:
    """Return the time from the first planned instant to the last end."""
    done = result.measured(lambda rows: rows["done_ns"])
    if not len(done):
        return 0.0
    begin_ns = int(result.measured(lambda rows: rows["planned_ns"]).min())
    return float(max(int(done.max()), result.end_ns) - begin_ns) / 1e9


def _offered(total: int, result: LoadResult, workload: Workload) -> float | None:
    """Return the rate of planned instants of an open loop."""
    if not isinstance(workload.arrivals, OpenLoop) or total < 2:
        return None
    planned = result.measured(lambda rows: rows["planned_ns"])
    return float((total - 1) / (int(planned.max()) - int(planned.min())) * 1e9)


def _times(values_ns: np.ndarray) -> dict[str, float | None]:
    largest = float(values_ns.max()) / 1e6 if len(values_ns) else None
    mean = float(values_ns.mean()) / 1e6 if len(values_ns) else None
    return {**percentiles_ms(values_ns, (50, 90, 95, 99)), "max": largest, "mean": mean}


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value


def table(shown: Mapping[str, Any]) -> str:
    """Return a summary for people."""
    lines = [
        f"{shown['requests']} requests in {shown['duration_s']:.2f} s, "
        f"{shown['throughput_rps'] or 0:.1f} successes/s"
        + (f" (offered {shown['offered_rps']:.1f}/s)" if shown["offered_rps"] else ""),
    ]
    failed = ", ".join(f"{count} {name}" for name, count in shown["errors_by_class"].items())
    lines.append(f"{shown['errors']} errors" + (f": {failed}" if failed else ""))
    lines += ["", f"{'':16}{'p50':>10}{'p90':>10}{'p95':>10}{'p99':>10}{'max':>10}   ms"]
    for label, key in (
        ("response time", "response_time_ms"),
        ("service time", "service_time_ms"),
        ("connection wait", "connection_wait_ms"),
        ("generator lag", "generator_lag_ms"),
    ):
        cells = "".join(_cell(shown[key], name) for name in ("p50", "p90", "p95", "p99", "max"))
        lines.append(f"{label:16}{cells}")
    lines += ["", f"client: {shown['client_cpu_us_per_request']:.1f} us of CPU per request"]
    lines[-1] += f", {shown['client_cpu_share']:.0%} of its cores"
    verdict = "valid" if shown["valid"] else "INVALID: these numbers may not be used"
    lines.append(verdict)
    lines += [f"  - {text}" for text in shown["warnings"]]
    return "\n".join(lines)


def _cell(times: Mapping[str, float | None], name: str) -> str:
    if name not in times:
        return f"{'':>10}"
    value = times[name]
    return f"{'n too small':>12}"[-10:] if value is None else f"{value:>10.3f}"


def write(
    folder: Path, result: LoadResult, workload: Workload, shown: Mapping[str, Any], url: str
) -> None:
    """Write ``requests.parquet`` and ``load.json``; both appear whole or not at all."""
    table_file = folder / "requests.parquet"
    making = folder / "requests.parquet.making"
    columns = [(result.folder / str(number), rows) for number, rows in enumerate(result.rows)]
    names = sorted({name for place, rows in columns for name in phases(place, len(rows))})
    writer: pq.ParquetWriter | None = None
    for number, (place, rows) in enumerate(columns):
        found = phases(place, len(rows))
        for begin in range(0, max(1, len(rows)), ROWS_PER_GROUP):
            part = rows[begin : begin + ROWS_PER_GROUP]
            group = _group(part, number)
            for name in names:
                values = found.get(name, np.full(len(rows), np.nan, dtype=np.float32))
                group[PHASE.format(name)] = pa.array(values[begin : begin + ROWS_PER_GROUP])
            arrow = pa.table(group)
            writer = writer or pq.ParquetWriter(making, arrow.schema, compression="zstd")
            writer.write_table(arrow)
    if writer is not None:
        writer.close()
        making.rename(table_file)
    messages = result.messages
    if len(messages):
        pq.write_table(pa.Table.from_pandas(messages, preserve_index=False), making)
        making.rename(folder / "messages.parquet")
    record = {"url": url, "workload": workload.model_dump(mode="json"), **shown}
    part_file = folder / "load.json.making"
    part_file.write_text(json.dumps(record, indent=1) + "\n")
    part_file.rename(folder / "load.json")


def _group(rows: np.ndarray, worker: int) -> dict[str, pa.Array]:
    group: dict[str, pa.Array] = {
        "stage": pa.array(words(STAGES, rows["stage"])),
        "worker": pa.array(np.full(len(rows), worker, dtype=np.int16)),
    }
    for name in ROW.names or ():
        if name not in ("stage", "error"):
            group[name] = pa.array(np.ascontiguousarray(rows[name]))
    group["error"] = pa.array(words(ERRORS, rows["error"]))
    return group
