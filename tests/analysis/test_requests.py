"""The summary of a load: the same numbers as by plain computations, and clear refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perflab.analysis.time_parts import summarise
from perflab.errors import AnalysisError
from perflab.statistics.quantiles import quantile


def write(path: Path, n: int = 5000, **changes: object) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    planned = np.arange(n, dtype=np.int64) * 1_000_000
    app = rng.gamma(2.0, 3.0, n)
    table = pd.DataFrame(
        {
            "stage": np.where(np.arange(n) < n // 10, "warmup", "measure"),
            "planned_ns": planned,
            "started_ns": planned + 20_000,
            "sent_ns": planned + 50_000,
            "done_ns": planned + 50_000 + (app * 1e6).astype(np.int64) + 100_000,
            "error": np.where(rng.random(n) < 0.02, "status", ""),
            "phase_app_ms": app.astype(np.float32),
            "phase_commit_ms": (0.5 * app).astype(np.float32),
        }
    ).assign(**changes)
    table.to_parquet(path)
    return table[(table["stage"] == "measure") & (table["error"] == "")]


def test_percentiles_and_intervals_are_those_of_plain_quantiles(tmp_path: Path) -> None:
    good = write(tmp_path / "r.parquet")
    summary = summarise(tmp_path / "r.parquet")
    assert summary.requests - summary.errors == len(good)
    rows = summary.percentiles[summary.percentiles["time"] == "response"].set_index("share")
    response_ms = (good["done_ns"] - good["planned_ns"]) / 1e6
    for share in (0.5, 0.9, 0.95, 0.99):
        plain = quantile(response_ms, share)
        assert rows.at[share, "low_ms"] == pytest.approx(plain.low)
        assert rows.at[share, "high_ms"] == pytest.approx(plain.high)
        assert rows.at[share, "value_ms"] == pytest.approx(plain.value, rel=0.01)


def test_few_requests_have_no_high_percentiles(tmp_path: Path) -> None:
    write(tmp_path / "r.parquet", n=120)
    rows = summarise(tmp_path / "r.parquet").percentiles
    known = rows[rows["value_ms"].notna()]
    assert set(known["share"]) == {0.5, 0.9, 0.95}


def test_requests_without_an_end_leave_a_bound_on_the_percentiles_that_they_could_move(
    tmp_path: Path,
) -> None:
    write(tmp_path / "r.parquet")
    table = pd.read_parquet(tmp_path / "r.parquet")
    late = table.index[600:640]
    table.loc[late, "error"] = "timeout"
    table.loc[late, "done_ns"] = table.loc[late, "planned_ns"] + 1_000_000_000
    table.to_parquet(tmp_path / "r.parquet")
    rows = summarise(tmp_path / "r.parquet").percentiles
    response = rows[rows["time"] == "response"].set_index("share")
    cut = response.index[response["at_least_ms"].notna()]
    # 40 of some 4,400 requests lie beyond the rank of 99.1%.
    assert list(cut) == [0.999]
    assert response.at[0.999, "at_least_ms"] == pytest.approx(1000)
    assert np.isnan(response.at[0.999, "value_ms"])
    assert response.at[0.99, "value_ms"] > 10


def test_failures_only_missing_columns_and_no_file_are_refused_in_words(tmp_path: Path) -> None:
    write(tmp_path / "failed.parquet", error="timeout")
    with pytest.raises(AnalysisError, match="none of its 4500 measured requests succeeded"):
        summarise(tmp_path / "failed.parquet")
    pd.DataFrame({"x": [1]}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(AnalysisError, match="has no column planned_ns"):
        summarise(tmp_path / "other.parquet")
    (tmp_path / "garbage.parquet").write_bytes(b"not parquet")
    for name in ("garbage.parquet", "nothing.parquet"):
        with pytest.raises(AnalysisError, match="cannot be read"):
            summarise(tmp_path / name)
