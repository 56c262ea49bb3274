"""What reads beside a load is told where it does not end."""

from __future__ import annotations

import threading

import pytest

from perflab.errors import StackError
from perflab.host import meters
from perflab.host.meters import Repeated


def test_a_reading_that_hangs_fails_its_trial_and_is_not_done_once_more(monkeypatch) -> None:
    monkeypatch.setattr(meters, "JOB_TIMEOUT_S", 0.2)
    released, times = threading.Event(), []

    def hang() -> None:
        times.append(1)
        released.wait(30)

    repeated = Repeated(hang, 0.01, at_end=True)
    repeated.start()
    with pytest.raises(StackError, match="did not end within"):
        repeated.stop()
    assert len(times) == 1
    released.set()
