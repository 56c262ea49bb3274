"""Windows of streams know phase, users, CPU and latency; what goes with what is found again."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from perflab.analysis import relations
from perflab.analysis.stream_relations import volume_law
from perflab.analysis.streams import bands, has_streams, stream_windows
from perflab.recordings import Run
from tests.synthetic import write_run
from tests.synthetic_streams import HEARERS, write_stream_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_stream_run(tmp_path_factory.mktemp("streams"), blocks=3)


@pytest.fixture(scope="module")
def windows(run: Run) -> pd.DataFrame:
    return stream_windows(run, "chat")


def test_only_runs_that_measured_deliveries_have_streams(run: Run, tmp_path) -> None:
    assert has_streams(run)
    old = write_run(tmp_path, blocks=1, requests=10)
    assert not has_streams(old)
    assert stream_windows(old, "chat").empty


def test_windows_follow_a_crowd_through_its_phases(windows: pd.DataFrame) -> None:
    own = windows[windows["trial_id"] == "b000-p00-a0"].set_index("t_s")
    assert list(own["phase"].unique()) == ["ramp", "plateau", "tail"]
    # At the middle of the fifth second the tenth user joins.
    assert own.loc[4, "users"] == 10
    assert own.loc[4, "joining"]
    assert not own.loc[12, "joining"]
    level = own[own["phase"] == "plateau"]
    assert (level["users"] == 20).all()
    assert level["messages_per_s"].mean() == pytest.approx(20 * HEARERS, rel=0.03)
    assert level["p50_ms"].between(8, 12.1).all()
    assert level["cpu"].iloc[2:].mean() == pytest.approx(0.2, abs=0.01)
    # 80 deliveries a second bear a p90 but no p99.
    assert own["p99_ms"].isna().all()


def test_the_bands_are_as_far_apart_as_planted(windows: pd.DataFrame) -> None:
    found = bands(windows, "rung=costly_logins", "rung=free_logins")
    assert found.points == pytest.approx(60, abs=3)
    assert found.low <= found.points <= found.high
    assert found.n == 3
    assert bands(windows.iloc[:0], "a", "b").n == 0


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_the_exponent_of_volume_is_found_again(power: float) -> None:
    size = np.tile(np.arange(10, 200, 5), 4)
    planted = pd.DataFrame(
        {
            "trial_id": np.repeat(list("abcd"), len(size) // 4),
            "acting": size,
            "listeners": size,
            "messages_per_s": 0.1 * size**power,
        }
    )
    assert volume_law(planted).exponent.value == pytest.approx(power, abs=0.02)


def test_crowds_within_few_trials_are_not_taken_for_trials(windows: pd.DataFrame) -> None:
    few = windows[windows["block"] == 0]
    found = volume_law(few)
    assert not found.supported
    assert "2 trials" in found.text()
    assert volume_law(windows).n == 6


def test_every_question_gets_an_answer_in_words(run: Run) -> None:
    table = relations(run)
    assert len(table) == 2 * 4 + 2
    assert (table["answer"].str.len() > 5).all()
    assert "points of CPU" in table["answer"].iloc[-1]
