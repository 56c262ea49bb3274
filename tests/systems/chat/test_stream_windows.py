"""Windows of streams have the planted phase, users, CPU and latency."""

from __future__ import annotations

import pandas as pd
import pytest

from perflab.recordings import Run
from perflab.systems.chat.views import bands
from perflab.systems.chat.windows import windows as windows_of


@pytest.fixture(scope="module")
def windows(streams: Run) -> pd.DataFrame:
    return windows_of(streams)


def test_the_bands_are_as_far_apart_as_planted(windows: pd.DataFrame) -> None:
    sentence = bands(windows, "rung=costly_logins", "rung=free_logins")
    assert int(sentence.partition(" ")[0]) == pytest.approx(60, abs=3)
    assert bands(windows.iloc[:0], "a", "b").startswith("no block holds both")
