"""Whether streams settle is judged by deliveries on the plateau, not by the logins before it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from perflab.analysis.trials.validity import message_windows, steady_trials, validity_table
from perflab.systems.chat.responses import STEADY
from tests.systems.chat.synthetic_streams import HEARERS, write_stream_run


def unsettled(root: Path, growth: float) -> list[int]:
    run = write_stream_run(root, growth=growth, delay_s=0.3)
    return validity_table(run)["unsettled"].tolist()


def test_a_queue_that_grows_on_the_plateau_is_unsettled(tmp_path: Path) -> None:
    assert unsettled(tmp_path / "level", 0.0) == [0, 0]
    assert unsettled(tmp_path / "growing", 0.05) == [2, 0]


def test_windows_are_of_the_plateau_alone(tmp_path: Path) -> None:
    run = write_stream_run(tmp_path, blocks=1)
    trials = run.trials().set_index("trial_id")
    found = message_windows(run, STEADY, 10)
    assert (found.groupby("trial_id").size() == 10).all()
    begins = found.groupby("trial_id")["start_ns"].min()
    pd.testing.assert_series_equal(
        begins, trials["plateau_begin_ns"].astype("int64"), check_names=False
    )
    # Twenty users send once a second to four hearers.
    assert found["throughput_rps"].between(15 * HEARERS, 25 * HEARERS).all()
    assert set(steady_trials(run)["trial_id"]) == set(trials.index)
