"""The kernel's counts, and the phases that services report, as columns of a trial's row."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from perflab.instruments.kernel import full_backlogs, queue_columns, schedule_columns
from perflab.instruments.requests import phase_columns

S = 1_000_000_000


def queues(*rows: tuple[float, str, int, int, int]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["t_ns", "service", "waiting", "backlog", "drops"])
    return table.assign(t_ns=(table["t_ns"] * S).astype("int64"))


def test_only_the_drops_of_this_load_count_also_with_a_new_listener() -> None:
    table = queues((0, "a", 0, 5, 40), (1, "a", 6, 5, 43), (2, "a", 0, 5, 0), (3, "a", 2, 5, 2))
    row = queue_columns(table, ["a", "b"])
    assert row["accept_queue_max_a"] == 6
    assert row["accept_drops_a"] == 5
    assert math.isnan(row["accept_drops_b"])
    assert math.isnan(row["accept_queue_max_b"])


def test_the_service_whose_backlog_overflowed_is_named_and_no_other() -> None:
    table = queues((0, "a", 0, 5, 40), (0, "b", 0, 128, 0), (1, "a", 6, 5, 78), (1, "b", 9, 128, 0))
    (warning,) = full_backlogs(table)
    assert (warning.code, warning.side) == ("service.backlog", "server")
    assert "service 'a' dropped 38 connections" in warning.text
    assert "up to 6" in warning.text
    assert "room for 6" in warning.text


def test_shares_of_time_are_seconds_a_second_of_the_measured_stage() -> None:
    # After the first second the service runs half of the time, and four threads wait.
    rows = [(0, "a", 3, 1), (1, "a", 3, 1), (2, "a", 3.5, 5), (3, "a", 4, 9)]
    table = pd.DataFrame(rows, columns=["t_ns", "service", "run_ns", "delay_ns"])
    numbers = ["t_ns", "run_ns", "delay_ns"]
    table[numbers] = (table[numbers] * S).astype("int64")
    row = schedule_columns(table, ["a", "b"], S, 3 * S)
    assert row["run_share_a"] == pytest.approx(0.5)
    assert row["core_wait_share_a"] == pytest.approx(4.0)
    assert math.isnan(row["run_share_b"]), "of it nothing is told"


def requests_of(values: list[float], **columns: object) -> pd.DataFrame:
    table = pd.DataFrame({"stage": "measure", "error": "", "phase_op_ms": values})
    return table.assign(**columns)


def test_a_phase_column_is_the_median_of_measured_successes() -> None:
    table = requests_of([1, 2, 3, 4, 5, 6, 100, 200])
    table.loc[6, "stage"] = "warmup"
    table.loc[7, "error"] = "body"
    assert phase_columns(table) == {"phase_op_p50_ms": 3.5}


def test_too_few_values_for_a_median_give_none() -> None:
    assert pd.isna(phase_columns(requests_of([1, 2, 3]))["phase_op_p50_ms"])
    assert phase_columns(requests_of([1.0] * 9).drop(columns="phase_op_ms")) == {}
