"""Times of streams: until the first chunk, and between chunks.

The LLM field calls them TTFT (time to first token) and ITL (inter-token latency). The first counts
from the planned instant, as all response times do. Events that one read completed have one instant:
the gaps between them are 0, and a remark says how many there are. The end marker is no chunk and
ends no gap. Percentiles obey the rules of all others (:mod:`perflab.statistics.quantiles`): a
stream that was cut off (a time-out) has its gaps up to its last chunk, and its last gap (or its
time to the first chunk) is cut off with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perflab.load.checks.load_remarks import QUIET_S, of_client_time
from perflab.load.clients.outcome import CENSORED_CODES, MEASURE
from perflab.load.records.chunk_rows import NOTHING, chunk_rows
from perflab.load.records.result import LoadResult, completed, per_second
from perflab.load.records.times import Times, of_rows, short_delays_ms
from perflab.load.records.wakeups import Wakeups
from perflab.recordings.schema import Remark
from perflab.statistics.in_words import as_share

NAMES = ("known", "elapsed", "late", "failed")
OF_STREAMS = (50, 95, 99)
MANY_AT_ONCE = 0.05


@dataclass(frozen=True)
class ChunkTimes:
    """Times from the planned instant to the ``first`` chunk, and ``gaps`` to the next chunk.

    ``chunks`` counts those of measured successes; ``per_s`` are those that came in the window of
    throughput. Of the gaps, ``at_once_share`` are 0: one read completed both chunks.
    """

    first: Times
    gaps: Times
    chunks: int
    per_s: float
    at_once_share: float


def times_of_chunks(result: LoadResult) -> ChunkTimes | None:
    """Return the times of a load's streams; None where the load asked for no stream."""
    written = [chunk_rows(place) for place in result.places]
    if not any(map(len, written)):
        return None
    parts = list(zip(written, result.rows, result.wakeups, strict=True))
    short_ms = short_delays_ms(result.wakeups)
    first, gaps = (
        Times(**{name: np.concatenate([one[name] for one in pieces]) for name in NAMES},
              short_ms=short_ms, timeout_ns=result.timeout_s * 1e9)
        for pieces in ([_first(*part) for part in parts], [_gaps(*part) for part in parts])
    )  # fmt: skip
    chunks = chunks_in_window = 0
    for packed, rows, _ in parts:
        content = packed[packed["bytes"] >= 0]
        good = (rows["error"] == 0)[content["request"]]
        chunks += int((good & (rows["stage"] == MEASURE)[content["request"]]).sum())
        chunks_in_window += completed(content["at_ns"][good], result.counted)
    return ChunkTimes(
        first=first,
        gaps=gaps,
        chunks=chunks,
        per_s=per_second(chunks_in_window, result.counted_ns),
        at_once_share=float((gaps.known == 0).mean()) if len(gaps.known) else float("nan"),
    )


def _first(packed: np.ndarray, rows: np.ndarray, wakeups: Wakeups) -> dict[str, np.ndarray]:
    content, requests = packed[packed["bytes"] >= 0], np.unique(packed["request"])
    answered, first = np.unique(content["request"], return_index=True)
    came_ns = np.zeros(len(rows), dtype=np.int64)
    came_ns[answered] = content["at_ns"][first]
    streamed = np.array(rows[requests])
    # The first chunk stands in for the first byte: the rules for cut-off requests are the same.
    streamed["first_byte_ns"] = came_ns[requests]
    return of_rows(wakeups, streamed[streamed["stage"] == MEASURE], "planned_ns", "first_byte_ns")


def _gaps(packed: np.ndarray, rows: np.ndarray, wakeups: Wakeups) -> dict[str, np.ndarray]:
    content = packed[packed["bytes"] >= 0]
    has_end = np.zeros(len(rows), dtype=bool)
    has_end[packed["request"][(packed["bytes"] < 0) & (packed["bytes"] != NOTHING)]] = True
    is_cut = np.isin(rows["error"], CENSORED_CODES)
    counts = ((rows["error"] == 0) | is_cut) & (rows["stage"] == MEASURE)
    row_of_chunk, at_ns = content["request"], np.array(content["at_ns"])
    in_one_stream = (row_of_chunk[1:] == row_of_chunk[:-1]) & counts[row_of_chunk[1:]]
    since, until = at_ns[:-1][in_one_stream], at_ns[1:][in_one_stream]
    is_last = np.diff(row_of_chunk.astype(np.int64), append=-1) != 0
    open_end = is_last & (is_cut & counts & ~has_end)[row_of_chunk]
    return {
        "known": until - since,
        "elapsed": rows["done_ns"][row_of_chunk[open_end]] - at_ns[open_end],
        "late": wakeups.stood_still_ns(since, until),
        # How many gaps a failed stream would have had is not known.
        "failed": np.zeros(0, dtype=np.int64),
    }


def remarks(chunk_times: ChunkTimes | None) -> list[Remark]:
    """Return the remarks on these numbers."""
    if chunk_times is None:
        return []
    numbers = {
        f"{what} {name}": number
        for what, times in (("first chunk", chunk_times.first), ("gap", chunk_times.gaps))
        for name, number in times.numbers(OF_STREAMS).items()
        if name != "max"
    }
    notes = of_client_time(numbers)
    if chunk_times.at_once_share > MANY_AT_ONCE:
        text = f"{as_share(chunk_times.at_once_share)} of the gaps between chunks are 0: "
        text += "the client read both chunks at once, so the time between them is unknown; what"
        text += " packs a stream (Content-Encoding) may hold it back"
        notes.append(Remark(code="stream.at_once", text=text))
    silent_s = np.concatenate([chunk_times.first.elapsed, chunk_times.gaps.elapsed]) / 1e9
    if (silent_s := silent_s[silent_s > QUIET_S]).size:
        text = f"{silent_s.size} streams had got no chunk for over {QUIET_S:g} s when they were cut"
        text += f" off, half of them for {np.median(silent_s):.1f} s"
        notes.append(Remark(code="stream.quiet", text=text))
    return notes
