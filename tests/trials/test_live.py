"""The display of a running run: live numbers, marked as live, and the time that is left."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from perflab.trials.progress import (
    NOT_THE_RESULT,
    LiveCell,
    LoadProgress,
    Narrator,
    Note,
    TrialBegun,
)

TRIAL = TrialBegun(
    number=2, of=6, block=1, blocks=3, treatment="on", label="commit <on>", left_s=80.0
)
LOAD = LoadProgress(finished=400, of=1000, seconds=20.0, failed=3)


def test_a_terminals_line_says_live_and_counts_the_time_left_down() -> None:
    narrator = Narrator()
    narrator.line(TRIAL)
    text, stays = narrator.line(LOAD)
    assert not stays
    assert "trial 2/6, block 1/3: commit <on>, about 1:00 left  live: 400/1000 at" in text
    assert text.endswith("3 failed")


class Display:
    """Notes every change of a cell's output."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []

    def display(self, data: dict[str, str], **_: Any) -> None:
        self.shown.append(data)

    update = display


def test_no_live_number_stays_in_the_cell_however_the_run_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    display = Display()
    monkeypatch.setattr("IPython.display.DisplayHandle", lambda: display)
    monkeypatch.setattr("perflab.trials.progress.REDRAW_S", 0.0)
    with contextlib.suppress(KeyboardInterrupt), LiveCell() as cell:
        cell(Note(text="starting echo"))
        cell(TRIAL)
        cell(LOAD)
        assert "live: 400/1000" in display.shown[-1]["text/plain"]
        assert NOT_THE_RESULT in display.shown[-1]["text/plain"]
        raise KeyboardInterrupt
    assert display.shown[-1] == {"text/plain": "  starting echo"}
