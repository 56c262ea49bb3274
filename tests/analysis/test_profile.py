"""Shares of functions, on planted profiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab.analysis.accounts.profiles import (
    function_shares,
    profile_check,
    profile_of,
    profiled,
    watched,
)
from perflab.errors import AnalysisError
from tests.support.synthetic import profiled_run, write_run


def test_a_share_counts_the_innermost_function(tmp_path: Path) -> None:
    run = profiled_run(tmp_path, {"a": {"main;f;f;g": 30, "main;f": 10, "main": 60}})
    profile = profile_of(run, "variant=a")
    assert profile.self_share.mean().to_dict() == pytest.approx({"g": 0.3, "f": 0.1, "main": 0.6})
    assert profile.samples == 6 * 100


def test_the_shares_of_functions_have_intervals_over_trials(tmp_path: Path) -> None:
    chains = {"main;send": 500, "main;store": 200, "main": 300}
    table = function_shares(profiled_run(tmp_path, {"a": chains}, noise=0.05), count=2)
    assert table["function"].tolist() == ["send", "main"]
    assert table["trials"].tolist() == [6, 6]
    assert (table["low"] < table["percent"]).all()
    assert (table["percent"] < table["high"]).all()


def test_what_the_profiler_saw_stands_beside_the_cpu(tmp_path: Path) -> None:
    run = profiled_run(tmp_path, {"a": {"main": 300}}, seen_share={"a": 0.3})
    (row,) = profile_check(run).to_dict("records")
    assert (row["looks"], row["samples"], row["n"]) == (6000, 1800, 6)
    assert row["seen %"] == pytest.approx(30)
    assert row["CPU low"] == pytest.approx(30)


WITH = {"main;send;deflate": 270, "main;send": 230, "main": 500}
WITHOUT = {"main;send": 240, "main": 560}
WATCH = {"a": {"send": "^send$", "deflate": "^deflate$"}, "b": {"send": "^send$"}}


def test_watched_functions_have_shares_and_times_with_intervals_over_trials(
    tmp_path: Path,
) -> None:
    run = profiled_run(tmp_path, {"a": WITH, "b": WITHOUT}, watch=WATCH, noise=0.05)
    table = watched(run).set_index(["treatment", "watched"])
    assert list(table.index) == [
        ("variant a", "send"), ("variant a", "deflate"), ("variant b", "send"),
    ]  # fmt: skip
    send = table.loc[("variant a", "send")]
    assert send["share low"] < 50 < send["share high"]
    # 500 looks, a hundred a second, over 1000 messages.
    assert send["us low"] < 5000 < send["us high"]
    assert send["n"] == 6
    assert table.loc[("variant b", "send"), "us"] == pytest.approx(2400, rel=0.05)


def test_a_run_without_a_profiler_has_no_profile(tmp_path: Path) -> None:
    run = write_run(tmp_path, blocks=1, requests=10)
    assert profiled(run) == []
    assert function_shares(run).empty
    assert run.table("calls").empty
    assert watched(run).empty
    with pytest.raises(AnalysisError, match="no valid profiled trial"):
        profile_of(run, "synchronous_commit=on")
