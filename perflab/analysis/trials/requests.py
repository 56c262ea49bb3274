"""Many requests in few numbers: percentiles with intervals, time windows, where the time went.

For one load (``perflab load --out``) or one trial, up to tens of millions of requests: columns
are read and dropped one by one, order statistics come from partial sorts. Requests of one load
are autocorrelated, so its intervals say how well *this load's* percentile is known, not what
another load would show.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from perflab.analysis.methods.quantiles import places
from perflab.errors import AnalysisError
from perflab.percentiles import CENSORED, bounds_of, smallest_n
from perflab.recordings.columns import PHASE_COLUMN

SHARES = (0.5, 0.9, 0.95, 0.99, 0.999)
BANDS = {"all": (0.0, 1.0), "around the median": (0.45, 0.55), "slowest 5%": (0.95, 1.0)}
INSTANTS = ("planned_ns", "started_ns", "sent_ns", "done_ns")
CODED = ("stage", "error")
WINDOWS = 100
MOST_WINDOWS = 60_000
WHOLE = "app"


@dataclass(frozen=True)
class RequestSummary:
    """What a load's requests show.

    ``percentiles``: time (response, service), share, value_ms, low_ms, high_ms (NaN where n is
    too small, or where requests that were cut off before their end could move it) and at_least_ms,
    what it is at least in that case. ``windows``: start_s, count, throughput_rps, p50_ms, p95_ms,
    by instants of being done. ``parts``: band, part, mean_ms, share; the parts of a band add up to
    its mean response.
    """

    requests: int
    errors: int
    percentiles: pd.DataFrame
    windows: pd.DataFrame
    parts: pd.DataFrame


def summarise(path: Path | str, windows: int = WINDOWS) -> RequestSummary:
    """Summarise a Parquet file of requests: its measured stage, successes only.

    Raises
    ------
    AnalysisError
        The file cannot be read, lacks a column, holds no success, or ``windows`` is out of range.
    """
    if not 1 <= windows <= MOST_WINDOWS:
        raise AnalysisError(f"windows = {windows} must lie between 1 and {MOST_WINDOWS}")
    try:
        names = pq.read_schema(path).names
        missing = [name for name in (*INSTANTS, *CODED) if name not in names]
        if missing:
            raise AnalysisError(f"{path}: has no column {', '.join(missing)}")
        file = pq.ParquetFile(path, read_dictionary=list(CODED))
        good, cut, requests = _outcomes(file)
        if not good.any():
            raise AnalysisError(f"{path}: none of its {requests} measured requests succeeded")
        phases = [name for name in names if PHASE_COLUMN.fullmatch(name)]
        return _summary(file, good, cut, requests, phases, windows)
    except (OSError, pa.ArrowException) as error:
        raise AnalysisError(f"{path}: cannot be read: {error}") from None


def _outcomes(file: pq.ParquetFile) -> tuple[np.ndarray, np.ndarray, int]:
    """Return which rows are measured successes, which were cut off, and how many were measured."""
    table = file.read(columns=list(CODED))
    measured = _is(table.column("stage"), "measure")
    errors = table.column("error")
    return measured & _is(errors, ""), measured & _is(errors, *CENSORED), int(measured.sum())


def _is(column: pa.ChunkedArray, *words: str) -> np.ndarray:
    parts: list[np.ndarray] = []
    for chunk in column.chunks:
        codes = [code for code, name in enumerate(chunk.dictionary.to_pylist()) if name in words]
        found = pc.fill_null(chunk.indices, -1).to_numpy(zero_copy_only=False)
        parts.append(np.isin(found, codes))
    return np.concatenate(parts) if parts else np.zeros(0, dtype=bool)


def _column(file: pq.ParquetFile, name: str, good: np.ndarray) -> np.ndarray:
    values: np.ndarray = file.read(columns=[name]).column(0).to_numpy()
    return values if good.all() else values[good]


def _summary(
    file: pq.ParquetFile,
    good: np.ndarray,
    cut: np.ndarray,
    requests: int,
    phases: list[str],
    windows: int,
) -> RequestSummary:
    planned, done = _column(file, "planned_ns", good), _column(file, "done_ns", good)
    response = done - planned
    window_table = _windows(done, response, windows)
    del done
    bands = _bands(response)
    sent = _column(file, "sent_ns", good)
    service = response - (sent - planned)
    started = _column(file, "started_ns", good)
    parts = {
        "generator lag": _means(started - planned, bands),
        "connection wait": _means(sent - started, bands),
    }
    del planned, started, sent
    percentiles = [
        *_percentiles("response", response, _elapsed(file, "planned_ns", cut)),
        *_percentiles("service", service, _elapsed(file, "sent_ns", cut)),
    ]
    parts |= _inside(file, good, phases, service, bands)
    return RequestSummary(
        requests,
        requests - int(good.sum()),
        pd.DataFrame(percentiles),
        window_table,
        _parts_table(parts, _means(response, bands)),
    )


def _elapsed(file: pq.ParquetFile, since: str, cut: np.ndarray) -> np.ndarray:
    """Return how long what was cut off had taken; what never came that far has no such time."""
    begun, done = _column(file, since, cut), _column(file, "done_ns", cut)
    elapsed: np.ndarray = done[begun > 0] - begun[begun > 0]
    return elapsed


def _percentiles(name: str, known: np.ndarray, elapsed: np.ndarray) -> list[dict[str, float | str]]:
    """Return order statistics with their distribution-free intervals; partial sorts suffice."""
    values_ns = np.concatenate([known, elapsed]) if len(elapsed) else known
    bounds = bounds_of(known, elapsed, [100 * share for share in SHARES]) if len(elapsed) else {}
    n = len(values_ns)
    wanted_of: dict[float, tuple[int, int, int]] = {}
    for share in SHARES:
        low, high = places(n, share)
        wanted_of[share] = (round(share * (n - 1)), low - 1, high - 1)
    wanted = sorted({place for three in wanted_of.values() for place in three})
    ordered = np.partition(values_ns, wanted)
    rows: list[dict[str, float | str]] = []
    for share, three in wanted_of.items():
        at_least = bounds[100 * share].at_least / 1e6 if bounds else math.nan
        known_well = n >= smallest_n(share) and math.isnan(at_least)
        value, lower, upper = (
            float(ordered[place]) / 1e6 if known_well else math.nan for place in three
        )
        rows.append(
            {
                "time": name,
                "share": share,
                "value_ms": value,
                "low_ms": lower,
                "high_ms": upper,
                "at_least_ms": at_least,
            }
        )
    return rows


def _windows(done: np.ndarray, response: np.ndarray, windows: int) -> pd.DataFrame:
    begin, end = int(done.min()), int(done.max())
    width = max(1, -(-(end - begin + 1) // windows))
    place = ((done - begin) // width).astype(np.uint16)
    if (place[1:] < place[:-1]).any():
        order = np.argsort(place, kind="stable")  # a radix sort, for 16 bits
        place, response = place[order], response[order]
    edges = np.searchsorted(place, np.arange(windows + 1))
    p50, p95 = np.full(windows, np.nan), np.full(windows, np.nan)
    for number in range(windows):
        own = response[edges[number] : edges[number + 1]]
        if len(own):
            middle, high = round(0.5 * (len(own) - 1)), round(0.95 * (len(own) - 1))
            ordered = np.partition(own, (middle, high))
            p50[number], p95[number] = ordered[middle] / 1e6, ordered[high] / 1e6
    count = np.diff(edges)
    return pd.DataFrame(
        {
            "start_s": np.arange(windows) * (width / 1e9),
            "count": count,
            "throughput_rps": count / (width / 1e9),
            "p50_ms": p50,
            "p95_ms": p95,
        }
    )


def _bands(response: np.ndarray) -> dict[str, np.ndarray | slice]:
    """Return the rows of each band of response times."""
    n = len(response)
    found: dict[str, np.ndarray | slice] = {"all": slice(None)}
    edges = {round(share * (n - 1)) for low, high in BANDS.values() for share in (low, high)}
    ordered = np.partition(response, sorted(edges))
    for name, (low, high) in BANDS.items():
        if name != "all":
            least, most = ordered[round(low * (n - 1))], ordered[round(high * (n - 1))]
            found[name] = np.flatnonzero((response >= least) & (response <= most))
    return found


def _means(values: np.ndarray, bands: dict[str, np.ndarray | slice]) -> dict[str, float]:
    """Return the mean of each band, in ms, of nanoseconds."""
    return {name: float(values[rows].mean()) / 1e6 for name, rows in bands.items()}


def _inside(
    file: pq.ParquetFile,
    good: np.ndarray,
    phases: list[str],
    service: np.ndarray,
    bands: dict[str, np.ndarray | slice],
) -> dict[str, dict[str, float]]:
    """Return the parts of the service time: reported phases, and what lies outside of them."""
    found: dict[str, dict[str, float]] = {}
    for column in phases:
        values = np.nan_to_num(_column(file, column, good).astype(np.float64)) * 1e6
        found[column.removeprefix("phase_").removesuffix("_ms")] = _means(values, bands)
    whole = found.pop(WHOLE, None)
    told = {band: sum(part[band] for part in found.values()) for band in bands}
    within = whole or told
    served = _means(service, bands)
    parts = {"queue and other": {band: served[band] - within[band] for band in bands}, **found}
    if whole is not None:
        parts["unaccounted app"] = {band: whole[band] - told[band] for band in bands}
    return parts


def _parts_table(parts: dict[str, dict[str, float]], response: dict[str, float]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "band": band,
                "part": part,
                "mean_ms": means[band],
                "share": means[band] / whole if whole > 0 else float("nan"),
            }
            for band, whole in response.items()
            for part, means in parts.items()
        ]
    )
