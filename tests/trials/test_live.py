"""What is shown of a run under way: live numbers, said to be live, and the time that is left."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Any

import numpy as np
import pytest

from perflab.load.columns import latency_counts
from perflab.load.stopping import Progress
from perflab.progress import NOT_THE_RESULT, LiveCell, Narrator
from perflab.sampling.sampler import Sampler
from perflab.trials.events import LoadProgress, Note, TrialBegun, TrialDone
from perflab.trials.live import LiveNumbers, TimeLeft

TRIAL = TrialBegun(
    number=2, of=6, block=1, blocks=3, treatment="on", label="commit <on>", left_s=80.0
)
LOAD = LoadProgress(
    finished=400, of=1000, seconds=20.0, failed=3, percentiles_ms={"p50": 12.5},
    cores={"inference": 0.75},
)  # fmt: skip
DONE = TrialDone(trial_id="b000-p01-a0", state="valid", throughput_rps=320.0)


def times(ms: float, number: int) -> Counter[int]:
    return Counter(latency_counts(np.full(number, int(ms * 1e6))))


def test_percentiles_so_far_are_of_what_is_measured_and_not_of_the_warm_up() -> None:
    live = LiveNumbers(1000)
    cold = live.event(Progress(finished=50, counts=times(900, 50)), {}, 0.2)
    assert (cold.warming_up, cold.percentiles_ms) == (True, {})
    # In this report the warm-up ends: its times are of both.
    mixed = live.event(Progress(finished=90, measured=10, counts=times(900, 40)), {}, 0.4)
    assert (mixed.warming_up, mixed.percentiles_ms) == (False, {})
    warm = live.event(Progress(finished=390, measured=310, counts=times(10, 300)), {}, 0.6)
    assert warm.percentiles_ms["p95"] == pytest.approx(10, rel=0.01)


def test_busy_cores_are_those_of_the_last_second() -> None:
    sampler = Sampler({}, [])
    second = 1_000_000_000
    for at in range(41):
        # Idle for a second, then half a core.
        used = max(0, at - 20) * 25_000_000
        now = at * second // 20
        sampler._samples += [(now, "service", used, 0), (now, "core 0", 9 * now, 0)]
    assert sampler.cores_in_use() == {"service": pytest.approx(0.5)}
    assert Sampler({}, []).cores_in_use() == {}


def test_a_terminals_line_says_live_and_counts_the_time_left_down() -> None:
    narrator = Narrator()
    narrator.line(TRIAL)
    text, stays = narrator.line(LOAD)
    assert not stays
    assert "trial 2/6, block 1/3: commit <on>, about 1:00 left  live: 400/1000 at" in text
    assert "3 failed, p50 12.5 ms, inference 0.8 cores" in text


class Display:
    """What a cell's output was changed to."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []

    def display(self, data: dict[str, str], **_: Any) -> None:
        self.shown.append(data)

    update = display


@pytest.fixture
def display(monkeypatch: pytest.MonkeyPatch) -> Display:
    import IPython.display

    made = Display()
    monkeypatch.setattr(IPython.display, "DisplayHandle", lambda: made)
    return made


def test_nothing_live_stays_in_the_cell_when_the_run_ends_whatever_way(display: Display) -> None:
    with contextlib.suppress(KeyboardInterrupt), LiveCell(redraw_s=0.0) as cell:
        cell(Note(text="starting echo"))
        cell(TRIAL)
        cell(LOAD)
        assert "live: 400/1000" in display.shown[-1]["text/plain"]
        assert NOT_THE_RESULT in display.shown[-1]["text/plain"]
        raise KeyboardInterrupt
    assert display.shown[-1] == {"text/plain": "  starting echo"}


def test_treatments_are_estimated_from_their_own_trials_and_unknown_ones_from_all() -> None:
    left = TimeLeft()
    left.took("slow", 10.0)
    left.took("slow", 12.0)
    left.took("fast", 2.0)
    assert left.estimate_s(["slow", "fast"], restarts=0) == pytest.approx(13.0)
    assert left.estimate_s(["new"], restarts=0) == pytest.approx(8.0)
