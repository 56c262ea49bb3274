"""The parts of a response time add up to it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perflab.analysis.time_parts import (
    change,
    change_sentence,
    decompose,
    parts_of_load,
    split,
)
from perflab.errors import AnalysisError
from perflab.statistics.quantiles import across_trials
from tests.support.synthetic import write_run


def one_request(**phases: float) -> pd.DataFrame:
    base = {
        "trial_id": "t",
        "treatment": "x",
        "error": "",
        "planned_ns": 0,
        "started_ns": 1_000_000,
        "sent_ns": 3_000_000,
        "done_ns": 13_000_000,
    }
    columns = {f"phase_{name}_ms": value for name, value in phases.items()}
    return pd.DataFrame([{**base, **columns}])


def test_parts_by_hand() -> None:
    parts = split(one_request(app=8.0, inference=2.0, commit=5.0)).iloc[0].to_dict()
    assert parts == {
        "generator lag": 1.0,
        "connection wait": 2.0,
        "queue and other": 2.0,
        "inference": 2.0,
        "commit": 5.0,
        "unaccounted app": 1.0,
    }


@given(
    st.lists(
        st.tuples(*[st.integers(0, 10**9)] * 3, st.floats(0, 100) | st.just(np.nan)),
        min_size=1,
        max_size=20,
    )
)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_parts_of_every_request_add_up_to_it(rows) -> None:
    frame = pd.DataFrame(rows, columns=["lag", "wait", "service", "phase_app_ms"])
    frame["planned_ns"] = 0
    frame["started_ns"] = frame["lag"]
    frame["sent_ns"] = frame["started_ns"] + frame["wait"]
    frame["done_ns"] = frame["sent_ns"] + frame["service"]
    assert split(frame).sum(axis=1).to_numpy() == pytest.approx(frame["done_ns"].to_numpy() / 1e6)


def test_trials_count_alike_whatever_their_size() -> None:
    short = one_request(app=8.0)
    long = pd.concat([one_request(app=4.0).assign(trial_id="u")] * 9, ignore_index=True)
    table = decompose(pd.concat([short, long], ignore_index=True)).set_index("part")
    assert table.loc["unaccounted app", "mean_ms"] == 6.0


def test_the_parts_of_the_tail_add_up_to_the_response_of_the_tail(tmp_path) -> None:
    requests = write_run(tmp_path).requests()
    response = (requests["done_ns"] - requests["planned_ns"]) / 1e6
    for band, low, high in (("all", 0.0, 1.0), ("median", 0.45, 0.55), ("tail", 0.95, 1.0)):
        table = decompose(requests, band)
        for treatment, parts in table.groupby("treatment"):
            of_treatment = requests["treatment"] == treatment
            trials = response[of_treatment].groupby(requests["trial_id"][of_treatment])
            expected = trials.apply(
                lambda x, low=low, high=high: x[
                    (x >= x.quantile(low)) & (x <= x.quantile(high))
                ].mean()
            )
            assert parts["mean_ms"].sum() == pytest.approx(across_trials(expected).value)
    with pytest.raises(AnalysisError, match="no band 'tial'"):
        decompose(requests, "tial")


def planted_change(commit_ms: float, blocks: int = 6) -> pd.DataFrame:
    """Return requests of two treatments that differ only in the commit of the second."""
    rng = np.random.default_rng(3)
    parts = []
    for block in range(blocks):
        for name, extra in (("on", 0.0), ("off", commit_ms)):
            n = 200
            commit = rng.gamma(4.0, 0.5, n) + extra
            app = commit + rng.gamma(4.0, 0.25, n)
            sent = np.full(n, 1_000_000)
            parts.append(
                pd.DataFrame(
                    {
                        "trial_id": f"{name}{block}",
                        "treatment": name,
                        "block": block,
                        "error": "",
                        "planned_ns": 0,
                        "started_ns": 10_000,
                        "sent_ns": sent,
                        "done_ns": sent + (app * 1e6).astype(int) + 200_000,
                        "phase_app_ms": app,
                        "phase_commit_ms": commit,
                    }
                )
            )
    return pd.concat(parts, ignore_index=True)


def test_the_part_behind_a_change_is_named() -> None:
    table = change(planted_change(3.0), "on", "off")
    assert table["part"][0] == "commit"
    assert table["low_ms"][0] <= 3.0 <= table["high_ms"][0]
    assert "the part that changes most with it is commit: +" in change_sentence(table, "on", "off")
    silent = change(
        planted_change(3.0).drop(columns=["phase_app_ms", "phase_commit_ms"]), "on", "off"
    )
    assert change_sentence(silent, "on", "off").endswith(
        "reports no parts of its time (Server-Timing)."
    )
    unchanged = change(planted_change(0.0), "on", "off")
    words = "no single part is certain to have changed (6 blocks)"
    assert words in change_sentence(unchanged, "on", "off")


def test_treatments_without_a_common_block_are_refused() -> None:
    requests = planted_change(1.0, blocks=2)
    split_up = requests[(requests["treatment"] == "on") == (requests["block"] == 0)]
    with pytest.raises(AnalysisError, match="no block"):
        change(split_up, "on", "off")


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


def test_a_load_has_parts_of_all_of_the_median_and_of_the_slowest_requests(tmp_path: Path) -> None:
    good = write(tmp_path / "r.parquet")
    parts = parts_of_load(tmp_path / "r.parquet")
    response_ms = (good["done_ns"] - good["planned_ns"]) / 1e6
    assert parts["all"].sum() == pytest.approx(response_ms.mean())
    slowest = response_ms[response_ms >= response_ms.quantile(0.95)]
    assert parts["slowest 5%"].sum() == pytest.approx(slowest.mean())
    assert parts.loc["commit", "slowest 5%"] > 2 * parts.loc["commit", "around the median"]
    write(tmp_path / "failed.parquet", error="timeout")
    assert parts_of_load(tmp_path / "failed.parquet").empty


def test_missing_columns_and_no_file_are_refused_in_words(tmp_path: Path) -> None:
    pd.DataFrame({"x": [1]}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(AnalysisError, match="has no column planned_ns"):
        parts_of_load(tmp_path / "other.parquet")
    (tmp_path / "garbage.parquet").write_bytes(b"not parquet")
    for name in ("garbage.parquet", "nothing.parquet"):
        with pytest.raises(AnalysisError, match="cannot be read"):
            parts_of_load(tmp_path / name)
