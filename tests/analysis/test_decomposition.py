"""The parts of a response time add up to it, and the summary of a load has plain numbers."""

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
    largest_phase,
    split,
    summarise,
)
from perflab.errors import AnalysisError
from perflab.statistics.quantiles import quantile
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


def test_a_planted_run_adds_up_and_names_the_commit(tmp_path) -> None:
    run = write_run(tmp_path, failed=[(1, 0)])
    requests = run.requests()
    table = decompose(requests)
    took_ms = (requests["done_ns"] - requests["planned_ns"]) / 1e6
    by_trial = took_ms.groupby([requests["treatment"], requests["trial_id"]]).mean()
    whole = table.groupby("treatment")["mean_ms"].sum()
    assert whole.to_dict() == pytest.approx(by_trial.groupby("treatment").mean().to_dict())
    commit = table[table["part"] == "commit"]
    assert commit["share"].to_numpy() == pytest.approx(0.9 * 0.45, rel=0.05)
    text = largest_phase(table, run.record.treatments[0].name, "with the flush")
    assert text.startswith("with the flush: the largest part of the response time is commit, ")
    assert "5 trials" in text


def test_trials_count_alike_whatever_their_size() -> None:
    short = one_request(app=8.0)
    long = pd.concat([one_request(app=4.0).assign(trial_id="u")] * 9, ignore_index=True)
    table = decompose(pd.concat([short, long], ignore_index=True)).set_index("part")
    assert table.loc["unaccounted app", "mean_ms"] == 6.0


def test_the_parts_of_the_tail_add_up_to_the_response_of_the_tail(tmp_path) -> None:
    requests = write_run(tmp_path).requests()
    response = (requests["done_ns"] - requests["planned_ns"]) / 1e6
    for band, low, high in (("median", 0.45, 0.55), ("tail", 0.95, 1.0)):
        table = decompose(requests, band)
        for treatment, parts in table.groupby("treatment"):
            of_treatment = requests["treatment"] == treatment
            trials = response[of_treatment].groupby(requests["trial_id"][of_treatment])
            expected = trials.apply(
                lambda x, low=low, high=high: x[
                    (x >= x.quantile(low)) & (x <= x.quantile(high))
                ].mean()
            )
            assert parts["mean_ms"].sum() == pytest.approx(expected.mean())
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
    assert table["share"].sum() == pytest.approx(1.0)
    assert table["low_ms"][0] <= 3.0 <= table["high_ms"][0]
    assert "the part that changes most with it is commit: +" in change_sentence(table, "on", "off")
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
