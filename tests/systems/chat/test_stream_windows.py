"""Windows of streams have the planted phase, users, CPU and latency."""

from __future__ import annotations

import pandas as pd
import pytest

from perflab.recordings import Run
from perflab.systems.chat.views import bands
from perflab.systems.chat.windows import windows as windows_of
from tests.systems.chat.synthetic_streams import RECEIVERS


@pytest.fixture(scope="module")
def windows(streams: Run) -> pd.DataFrame:
    return windows_of(streams)


def test_windows_follow_a_crowd_through_its_phases(windows: pd.DataFrame) -> None:
    of_trial = windows[windows["trial_id"] == "b000-p01-a0"].set_index("t_s")
    assert list(of_trial["phase"].unique()) == ["ramp", "plateau", "tail"]
    # At the middle of the fifth second the tenth user joins.
    assert of_trial.loc[4, "users"] == 10
    assert of_trial.loc[4, "joining"]
    assert not of_trial.loc[12, "joining"]
    plateau = of_trial[of_trial["phase"] == "plateau"]
    assert (plateau["users"] == 20).all()
    assert plateau["messages_per_s"].mean() == pytest.approx(20 * RECEIVERS, rel=0.03)
    assert plateau["p90_ms"].between(12, 16.1).all()
    assert plateau["cpu"].iloc[2:].mean() == pytest.approx(0.2, abs=0.01)
    # The first second has no delivery, so it has no p90.
    assert of_trial["p90_ms"].isna().iloc[0]


def test_the_bands_are_as_far_apart_as_planted(windows: pd.DataFrame) -> None:
    sentence = bands(windows, "rung=costly_logins", "rung=free_logins")
    assert int(sentence.partition(" ")[0]) == pytest.approx(60, abs=3)
    assert bands(windows.iloc[:0], "a", "b").startswith("no block holds both")
