"""Medians of the phases that services report, as columns of a trial's row."""

from __future__ import annotations

import pandas as pd

from perflab.instruments.requests import phase_columns


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
