"""What a trial says of the services that served it, from samples of their CPU and memory."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from perflab.trials.summary import service_columns

MIB = 1 << 20


def row_of(begin_ns: int, end_ns: int) -> dict[str, float]:
    samples = pd.DataFrame(
        {
            "t_ns": [0, 1_000, 2_000, 3_000],
            "service": ["shop"] * 4,
            "cpu_ns": [0, 500, 1_000, 1_500],
            "memory_bytes": [10 * MIB, 20 * MIB, 60 * MIB, 30 * MIB],
        }
    )
    return service_columns(samples, ["shop"], begin_ns, end_ns)


@pytest.mark.parametrize(
    ("begin_ns", "end_ns", "mib"),
    [(900, 3_000, 60), (1_100, 1_200, 28), (2_500, 2_600, 45), (0, 900, 19)],
    ids=["a sample is the largest", "between two that rise", "between two that fall", "its end"],
)
def test_memory_is_the_largest_of_the_stage_however_short(
    begin_ns: int, end_ns: int, mib: float
) -> None:
    assert row_of(begin_ns, end_ns)["memory_shop_bytes"] == pytest.approx(mib * MIB)


def test_a_service_without_samples_has_no_memory_rather_than_none_used() -> None:
    row = service_columns(
        pd.DataFrame({"t_ns": [], "service": [], "cpu_ns": [], "memory_bytes": []}), ["shop"], 0, 9
    )
    assert math.isnan(row["memory_shop_bytes"])
    assert math.isnan(row["cpu_share_shop"])
