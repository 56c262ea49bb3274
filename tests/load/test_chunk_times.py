"""Times of streams from planted chunks: they follow the rules of all times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perflab.instruments.requests import chunk_columns
from perflab.load.checks.chunk_times import ChunkTimes, remarks, times_of_chunks
from perflab.load.checks.selfcheck import check
from perflab.load.records.chunk_rows import CHUNK_ROW, CHUNKS_FILE, NOTHING
from perflab.load.records.result import LoadResult
from perflab.load.report import summary
from perflab.load.summary_table import table
from perflab.load.workload import ClosedLoop, Request, Workload
from perflab.recordings.responses import STREAMS, named
from tests.load.planted import BEGIN_NS, MS, S, load_result

# A request is planned 300 ms before it is done; its chunks arrive these times (ms) after the plan.
CHUNKS = (100, 120, 150, 150)
END = -7  # the complement of the length of [DONE]
STREAM = Workload(request=Request(stream="sse"), arrivals=ClosedLoop(users=1, requests=40))


def planted(
    folder: Path,
    count: int = 40,
    offsets_ms: Sequence[Sequence[int]] = (),
    end: bool = True,
    **facts: Any,
) -> LoadResult:
    """Return a load of streams, one done every 100 ms, by default with ``CHUNKS``."""
    done_s = 0.3 + np.arange(count) * 0.1
    result = load_result(folder, done_s, **facts)
    rows = []
    for number in range(count):
        offsets_of_stream = offsets_ms[number] if number < len(offsets_ms) else CHUNKS
        planned_ns = BEGIN_NS + number * S // 10
        rows += [(planned_ns + offset * MS, 5, number) for offset in offsets_of_stream]
        if not offsets_of_stream:
            rows.append((0, NOTHING, number))
        elif end:
            rows.append((planned_ns + 290 * MS, END, number))
    (folder / "0" / CHUNKS_FILE).write_bytes(np.array(rows, dtype=CHUNK_ROW).tobytes())
    return result


def times_of(result: LoadResult) -> ChunkTimes:
    chunk_times = times_of_chunks(result)
    assert chunk_times is not None
    return chunk_times


def test_the_first_chunk_counts_from_the_planned_instant(tmp_path: Path) -> None:
    def late(rows: np.ndarray) -> None:
        rows["started_ns"] += 50 * MS
        rows["sent_ns"] += 50 * MS

    first = times_of(planted(tmp_path, change=late)).first
    assert first.numbers()["p50"].value == pytest.approx(100)
    # Half of the time was the client's own: it started late.
    assert first.numbers()["p50"].is_the_clients


def test_gaps_are_between_chunks_and_the_end_marker_is_none(tmp_path: Path) -> None:
    chunk_times = times_of(planted(tmp_path))
    assert sorted(set(chunk_times.gaps.known.tolist())) == [0, 20 * MS, 30 * MS]
    assert len(chunk_times.gaps.known) == 40 * 3
    assert chunk_times.gaps.numbers()["p50"].value == pytest.approx(20)
    assert chunk_times.at_once_share == pytest.approx(1 / 3)
    assert chunk_times.chunks == 160


def test_a_stream_cut_off_before_its_first_chunk_makes_bounds_of_the_times_it_could_move(
    tmp_path: Path,
) -> None:
    whole = planted(tmp_path / "whole")
    cut = planted(tmp_path / "cut", errors={"timeout": 4}, offsets_ms=[()] * 4)
    assert times_of(whole).first.numbers()["p90"].value == pytest.approx(100)
    numbers = times_of(cut).first.numbers()
    assert numbers["p50"].value == pytest.approx(100)
    assert math.isnan(numbers["mean"].value)
    assert numbers["mean"].at_least == pytest.approx((36 * 100 + 4 * 300) / 40)


def test_a_stream_cut_off_in_the_middle_has_a_first_chunk_and_a_gap_that_was_cut_off(
    tmp_path: Path,
) -> None:
    cut = times_of(planted(tmp_path, errors={"timeout": 4}, offsets_ms=[(100, 120)] * 4, end=False))
    assert len(cut.first.known) == 40
    assert len(cut.first.elapsed) == 0
    assert list(cut.gaps.elapsed) == [180 * MS] * 4
    assert math.isnan(cut.gaps.numbers()["mean"].value)


def test_streams_that_failed_have_no_times(tmp_path: Path) -> None:
    chunk_times = times_of(planted(tmp_path, errors={"stream_short": 10}))
    assert len(chunk_times.first.known) + len(chunk_times.first.elapsed) == 30
    assert len(chunk_times.gaps.known) == 90
    assert chunk_times.chunks == 120


def test_stalls_of_the_client_count_against_the_gaps_around_them(tmp_path: Path) -> None:
    # The client stood still for 25 ms, from 125 ms on: in the 30 ms gaps of the first two streams.
    delays = (np.array([0.15]), np.array([25.0]))
    gaps = times_of(planted(tmp_path, delays=delays)).gaps
    assert gaps.late.max() >= 25 * MS
    assert 1 <= int((gaps.late > 20 * MS).sum()) <= 2


def test_the_summary_and_the_columns_of_a_trial_have_the_times_and_the_rate(tmp_path: Path) -> None:
    result = planted(tmp_path, count=400)
    shown = summary(result, STREAM, check(result, STREAM))
    assert shown.first_chunk.ms["p50"] == pytest.approx(100)
    assert "33% of the gaps between chunks are 0" in " ".join(table(shown).split())
    # 4 chunks every 100 ms are 40 a second, less those after the last planned instant.
    assert times_of(result).per_s == pytest.approx(40, rel=0.02)
    columns = chunk_columns(times_of(result))
    assert columns["first_chunk_p99_ms"] == pytest.approx(100)
    assert columns["chunk_gap_p50_ms"] == pytest.approx(20)
    for response in STREAMS:
        assert response.name in columns
        assert named(STREAMS, response.name) == response


def test_streams_that_were_silent_until_they_were_cut_off_are_told(tmp_path: Path) -> None:
    def late(rows: np.ndarray) -> None:
        rows["done_ns"][:4] += 6 * S

    words = {"errors": {"aborted": 4}, "end": False, "change": late}
    cut = planted(tmp_path, offsets_ms=[(), (), (100,), (100,)], **words)
    (told,) = (item for item in remarks(times_of(cut)) if item.code == "stream.quiet")
    assert told.text.startswith("4 streams had got no chunk for over 5 s")
    assert told.text.endswith("for 6.2 s")
