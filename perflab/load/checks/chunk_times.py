"""Times of streams: until the first chunk, and between chunks.

The LLM field calls them TTFT (time to first token) and ITL (inter-token latency). The first counts
from the planned instant, as all response times do. Events that one read completed have one instant:
the gaps between them are 0, and the gap before them is that of all; how many are so is told. The
end marker is no chunk and ends no gap. Percentiles obey the rules of all others
(:mod:`perflab.statistics.percentiles`): a stream that was cut off (a time-out) has its gaps up to
its last chunk, and from there, or from its begin, one that was cut off with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from perflab.load.checks.times import Times, known, of_rows, short_delays_ms, shown
from perflab.load.checks.trend import of_client_time
from perflab.load.clients.outcome import CENSORED_CODES, MEASURE
from perflab.load.records.chunk_record import NOTHING, chunk_rows
from perflab.load.records.looks import Looks
from perflab.load.records.result import LoadResult, completed, per_second
from perflab.recordings.schema import Remark

NAMES = ("known", "elapsed", "late", "stalled")
OF_STREAMS = (50, 95, 99)
MANY_AT_ONCE = 0.05


@dataclass(frozen=True)
class ChunkTimes:
    """Times of the streams that a load measured.

    Attributes
    ----------
    first, gaps : Times
        From the planned instant to the first chunk; from each chunk to the next.
    chunks : int
        Those of measured successes.
    per_s : float
        Chunks of successes that came in the window for which throughput is taken, per second.
    at_once_share : float
        The share of gaps that are 0: one read completed both chunks.
    """

    first: Times
    gaps: Times
    chunks: int
    per_s: float
    at_once_share: float


def times_of_chunks(result: LoadResult) -> ChunkTimes | None:
    """Return the times of a load's streams; None where no answer was to be streamed."""
    parts = [
        _of_worker(chunk_rows(place), rows, looks)
        for place, rows, looks in zip(result.places, result.rows, result.looks, strict=True)
    ]
    if not any(part.asked for part in parts):
        return None
    begin_ns, end_ns = result.window
    came = sum(completed(part.came_ns, begin_ns, end_ns) for part in parts)
    short_ms = short_delays_ms(result.looks)
    first, gaps = (
        Times(**{name: np.concatenate([each[name] for each in own]) for name in NAMES},
              short_ms=short_ms)
        for own in ([part.first for part in parts], [part.gaps for part in parts])
    )  # fmt: skip
    return ChunkTimes(
        first=first,
        gaps=gaps,
        chunks=sum(part.chunks for part in parts),
        per_s=per_second(came, begin_ns, end_ns),
        at_once_share=float((gaps.known == 0).mean()) if len(gaps.known) else float("nan"),
    )


@dataclass(frozen=True)
class _Part:
    """What one worker has of it."""

    asked: int
    first: dict[str, np.ndarray]
    gaps: dict[str, np.ndarray]
    chunks: int
    came_ns: np.ndarray


def _of_worker(packed: np.ndarray, rows: np.ndarray, looks: Looks) -> _Part:
    requests = np.unique(packed["request"])
    has_end = np.zeros(len(rows), dtype=bool)
    has_end[packed["request"][(packed["bytes"] < 0) & (packed["bytes"] != NOTHING)]] = True
    content = packed[packed["bytes"] >= 0]
    good = rows["error"] == 0
    measured = rows["stage"] == MEASURE
    own = content["request"]
    return _Part(
        asked=len(requests),
        first=_first(content, rows, requests, looks),
        gaps=_gaps(content, rows, has_end, looks),
        chunks=int((good & measured)[own].sum()),
        came_ns=np.array(content["at_ns"][good[own]]),
    )


def _first(
    content: np.ndarray, rows: np.ndarray, requests: np.ndarray, looks: Looks
) -> dict[str, np.ndarray]:
    places, first = np.unique(content["request"], return_index=True)
    came_ns = np.zeros(len(rows), dtype=np.int64)
    came_ns[places] = content["at_ns"][first]
    own = np.array(rows[requests])
    # As if the first chunk were the first byte: the rules for what was cut off are the same.
    own["first_byte_ns"] = came_ns[requests]
    return of_rows(looks, own[own["stage"] == MEASURE], "planned_ns", "first_byte_ns")


def _gaps(
    content: np.ndarray, rows: np.ndarray, has_end: np.ndarray, looks: Looks
) -> dict[str, np.ndarray]:
    is_cut = np.isin(rows["error"], CENSORED_CODES)
    counts = ((rows["error"] == 0) | is_cut) & (rows["stage"] == MEASURE)
    own, at_ns = content["request"], np.array(content["at_ns"])
    within = (own[1:] == own[:-1]) & counts[own[1:]]
    since, until = at_ns[:-1][within], at_ns[1:][within]
    stalled = looks.stood_still_ns(since, until)
    is_last = np.append(own[1:] != own[:-1], True) if len(own) else np.zeros(0, dtype=bool)
    open_end = is_last & (is_cut & counts & ~has_end)[own]
    return {
        "known": until - since,
        "elapsed": rows["done_ns"][own[open_end]] - at_ns[open_end],
        "late": stalled,
        "stalled": stalled,
    }


def streams(found: ChunkTimes | None) -> dict[str, Any]:
    """Return the numbers of a load's streams for its summary; none where nothing was streamed.

    ``first_chunk_ms`` is from the planned instant to the first chunk, ``chunk_gap_ms`` from each
    chunk to the next, with bounds and the client's own time as response times have them.
    """
    if found is None:
        return {}
    return {
        **shown("first_chunk", found.first.numbers()),
        **shown("chunk_gap", found.gaps.numbers()),
        "chunks": found.chunks,
        "chunks_per_s": known(found.per_s),
        "chunks_at_once_share": known(found.at_once_share),
    }


def remarks(found: ChunkTimes | None) -> list[Remark]:
    """Return what is told beside these numbers."""
    if found is None:
        return []
    numbers = {
        f"{what} {name}": number
        for what, times in (("first chunk", found.first), ("gap", found.gaps))
        for name, number in times.numbers(OF_STREAMS).items()
        if name != "max"
    }
    told = of_client_time(numbers)
    if found.at_once_share > MANY_AT_ONCE:
        text = f"{found.at_once_share:.0%} of the gaps between chunks are 0: one read brought both"
        text += " chunks, and what the server took between them cannot be seen"
        told.append(Remark(code="stream.at_once", text=text))
    return told
