"""Points of a body's arrival: bounded in number, exact at both ends, and even between them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflab.load.checks.selfcheck import check
from perflab.load.records import record
from perflab.load.records.arrival_points import ArrivalPoints
from perflab.load.report import summary
from perflab.load.summary_table import table as table_of
from perflab.load.workload import ClosedLoop, Request, Workload
from perflab.recordings.columns import PROGRESS
from perflab.trials.summary import streamed_tables
from tests.load.clients.hostile import Hostile, Part, Script, beside, on_uvloop, play
from tests.load.processes import a_worker

SIZE = 2_000_000
BODY = bytes(SIZE)
LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % SIZE


@settings(max_examples=100, deadline=None)
@given(
    st.integers(2, 40),
    st.lists(st.integers(0, 100_000), min_size=1, max_size=400),
)
def test_there_are_never_more_points_than_asked_and_they_end_where_the_body_did(
    most: int, growth: list[int]
) -> None:
    reads, size = [], 0
    for number, more in enumerate(growth):
        size += more
        reads.append((1000 + number, size))
    progress = ArrivalPoints(most)
    for at_ns, so_far in reads:
        progress.note(at_ns, so_far)
    points = progress.points()
    assert 1 <= len(points) <= most
    assert points[0] == reads[0]
    assert points[-1] == reads[-1]
    assert set(points) <= set(reads)
    assert points == sorted(set(points))


def test_points_are_spread_over_the_body() -> None:
    progress = ArrivalPoints(50)
    for number in range(1, 10_001):
        progress.note(number, number * 100)
    sizes = [size for _, size in progress.points()]
    gaps = [later - earlier for earlier, later in pairwise(sizes)]
    assert 25 <= len(sizes) <= 50
    assert max(gaps) <= 1_000_000 / 24
    # Between first and last, points are a step apart, within one read.
    assert max(gaps[1:-1]) <= min(gaps[1:-1]) + 200


@pytest.mark.slow
def test_a_load_records_when_the_body_of_every_request_came(tmp_path: Path) -> None:
    points = 8
    request = Request(progress_points=points, expect_bytes=SIZE)
    work = Workload(request=request, arrivals=ClosedLoop(users=2, requests=4))
    in_pieces = Script((Part(LENGTH), Part(BODY[: SIZE // 20], 0.01, 20)), end="keep")
    with beside(Hostile([in_pieces])) as url, a_worker() as generator:
        result = generator.run(work, url, folder=tmp_path / "raw")
    table, requests = result.progress, result.requests
    assert list(requests["error"]) == [""] * 4
    assert table.groupby("request").size().max() <= points
    named = table.merge(requests, on=["worker", "user", "planned_ns"], suffixes=("", "_whole"))
    assert len(named) == len(table)
    for _, rows in named.groupby("request"):
        assert rows["at_ns"].iloc[0] == rows["first_byte_ns"].iloc[0]
        assert rows["at_ns"].iloc[-1] == rows["done_ns"].iloc[0]
        assert rows["bytes"].iloc[-1] == SIZE
        assert rows["at_ns"].is_monotonic_increasing
        assert rows["bytes"].is_monotonic_increasing
    assert table["request"].nunique() == 4
    assert streamed_tables(result)["progress"].columns.tolist() == [*PROGRESS]
    told = summary(result, work, check(result, work))
    record.write(tmp_path, result, work, told, "http://x/")
    assert table_of(record.read(tmp_path)) == table_of(told)
    assert pq.read_table(tmp_path / "progress.parquet").num_rows == len(table)


def test_a_body_that_stalls_has_points_up_to_its_last_byte() -> None:
    script = Script((Part(LENGTH), Part(BODY[: SIZE // 4])), end="hang")
    request = Request(progress_points=8, expect_bytes=SIZE)
    report = on_uvloop(lambda: play([script], request=request, timeout_s=0.5))
    assert report.outcomes == [("timeout", 200, SIZE // 4)]
    (exchange,) = report.exchanges
    assert exchange.progress is not None
    at_ns, size = exchange.progress.points()[-1]
    assert size == SIZE // 4
    assert at_ns < exchange.done_ns - 200_000_000
