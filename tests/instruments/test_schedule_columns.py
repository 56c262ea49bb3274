"""Shares of the scheduler's accounts, as columns of a trial's row."""

from __future__ import annotations

import pandas as pd
import pytest

from perflab.instruments.schedules import schedule_columns

SECOND = 1_000_000_000


def accounts(*rows: tuple[float, str, float, float]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["t_ns", "service", "run_ns", "delay_ns"])
    for name in ("t_ns", "run_ns", "delay_ns"):
        table[name] = (table[name] * SECOND).astype("int64")
    return table


def test_shares_are_seconds_a_second_of_the_measured_stage() -> None:
    # From the first second on it runs half of the time, and four threads wait.
    table = accounts((0, "a", 3, 1), (1, "a", 3, 1), (2, "a", 3.5, 5), (3, "a", 4, 9))
    row = schedule_columns(table, ["a"], SECOND, 3 * SECOND)
    assert row == {
        "run_share_a": pytest.approx(0.5),
        "core_wait_share_a": pytest.approx(4.0),
    }


def test_where_the_kernel_does_not_tell_there_is_no_number() -> None:
    row = schedule_columns(accounts((0, "a", 3, 1)), ["a", "b"], 0, SECOND)
    assert all(pd.isna(value) for value in row.values())
    assert set(row) == {f"{kind}_share_{name}" for kind in ("run", "core_wait") for name in "ab"}
