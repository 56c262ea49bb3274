"""The CPU and memory of services in a trial's row, from samples."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perflab.instruments import Load
from perflab.load.records.result import LoadResult
from perflab.load.workload import ClosedLoop, Request, Workload
from perflab.trials.summary import (
    OnTime,
    cpu_us_per_success,
    largest_memory,
    measured,
    memory_growth,
    service_columns,
)
from tests.load.planted import BEGIN_NS, S, load_result

MIB = 1 << 20
MS = 1_000_000


@pytest.mark.promise
def test_memory_that_nobody_measured_is_unknown() -> None:
    samples = pd.DataFrame({"t_ns": [0, 10], "cpu_ns": [0, 5], "memory_bytes": [0, 0]})
    assert math.isnan(largest_memory(samples, 0, 10))


def row_of(begin_ns: int, end_ns: int) -> dict[str, float]:
    samples = pd.DataFrame(
        {
            "t_ns": [0, 1_000, 2_000, 3_000],
            "service": ["shop"] * 4,
            "cpu_ns": [0, 500, 1_000, 1_500],
            "memory_bytes": [10 * MIB, 20 * MIB, 60 * MIB, 30 * MIB],
        }
    )
    return service_columns(samples, ["shop"], OnTime(begin_ns, end_ns, end_ns - begin_ns))


@pytest.mark.parametrize(
    ("begin_ns", "end_ns", "mib"),
    [(900, 3_000, 60), (1_100, 1_200, 28), (2_500, 2_600, 45), (0, 900, 19)],
    ids=["a sample is the largest", "between two that rise", "between two that fall", "its end"],
)
def test_memory_is_the_largest_of_the_stage_however_short(
    begin_ns: int, end_ns: int, mib: float
) -> None:
    assert row_of(begin_ns, end_ns)["memory_shop_bytes"] == pytest.approx(mib * MIB)


@pytest.mark.parametrize(
    ("memory", "growth"),
    [([10, 20, 30, 40, 50], 0.2), ([10, 40, 50, 50, 50], 0.0), ([0] * 5, math.nan)],
    ids=["it grows to the end", "it was filled at first", "nobody measured it"],
)
def test_growth_with_a_request_is_that_of_the_second_half(
    memory: list[float], growth: float, tmp_path: Path
) -> None:
    # A hundred requests a second, over two seconds.
    result = load_result(tmp_path, np.arange(1, 201) / 100)
    t_ns = BEGIN_NS + np.linspace(0, 2 * S, 5).astype(int)
    samples = pd.DataFrame({"t_ns": t_ns, "memory_bytes": [round(mib * MIB) for mib in memory]})
    assert memory_growth(samples, result) / MIB == pytest.approx(growth, rel=0.02, nan_ok=True)


def cut(folder: Path) -> LoadResult:
    """Return a load of three windows of 300 ms, each 1 s after the last; the first warms up."""
    begins = BEGIN_NS + np.arange(3) * S
    ends = begins + 300 * MS
    counted = np.array([ends[0], begins[1] + 60 * MS, begins[2] + 60 * MS])
    done_s = np.concatenate([np.arange(0.005, 0.3, 0.01) + at for at in range(3)])
    windows = np.stack([begins, counted, ends], axis=1)
    return load_result(folder, done_s, latency_s=0.004, windows=windows)


def test_cpu_of_a_load_in_windows_belongs_to_its_windows_and_all_their_successes(
    tmp_path: Path,
) -> None:
    result = cut(tmp_path)
    # The service uses half a core in every window, 150 ms, and nothing between them.
    edges = [0.0, 0.3, 1.0, 1.3, 2.0, 2.3, 4.0]
    used = [0.0, 0.15, 0.15, 0.30, 0.30, 0.45, 0.45]
    samples = pd.DataFrame(
        {
            "t_ns": [BEGIN_NS + round(at * S) for at in edges],
            "service": "shop",
            "cpu_ns": [round(used_s * S) for used_s in used],
            "memory_bytes": MIB,
        }
    )
    row = service_columns(samples, ["shop"], OnTime.of(result))
    assert row["cpu_share_shop"] == pytest.approx(0.5)
    # Each of the two windows that count has 30 successes, with those of its settling part.
    assert cpu_us_per_success(samples, result) == pytest.approx(300_000 / 60)


@pytest.mark.parametrize(
    ("cpu_ns", "errors", "is_known"),
    [([7, 8], {}, True), ([7, 7], {}, False), ([7, 7], {"connect": 9}, True), ([], {}, False)],
    ids=["it worked", "it answered without CPU", "it answered nothing", "others answered"],
)
def test_a_service_that_answers_without_cpu_is_not_measured(
    cpu_ns: list[int], errors: dict[str, int], is_known: bool, tmp_path: Path
) -> None:
    result = load_result(tmp_path, np.arange(9) / 10, errors=errors)
    workload = Workload(request=Request(node="shop"), arrivals=ClosedLoop(users=1, duration_s=1))
    samples = pd.DataFrame({"t_ns": [0, S], "service": ["shop", "shop"], "cpu_ns": [7, 7]})
    samples = samples.head(len(cpu_ns)).assign(cpu_ns=cpu_ns, memory_bytes=MIB)
    load, remarks = measured(Load(workload, result, samples, ("shop", "client")))
    assert len(load.samples) == (2 if is_known else 0)
    of_service = [remark.text for remark in remarks if "'shop'" in remark.text]
    assert ["start it in the foreground" in text for text in of_service] == [True] * (not is_known)
    columns = service_columns(load.samples, ["shop"], OnTime(0, S, S))
    assert all(math.isnan(value) is not is_known for value in columns.values())
