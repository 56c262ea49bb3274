"""Events are read as they were sent, and shown live; an unknown one names the way out."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perflab.errors import ConductorLost, RunInterrupted
from perflab.trials.client import conduct
from perflab.trials.plan import Order, RunPlan
from perflab.trials.progress import (
    NOT_THE_RESULT,
    Event,
    Failed,
    LiveCell,
    LoadProgress,
    Narrator,
    Note,
    RunBegun,
    TrialBegun,
    followed,
    parse,
)
from tests.systems.planned import plan_of

BEGUN = RunBegun(run_id="20260102-a", path="runs/20260102-a", backend="process")


@pytest.mark.parametrize(
    "line",
    [
        b'{"event": "paused"}',
        b'{"event": "note", "text": "of a newer side", "urgency": 3}',
        b"Traceback (most recent call last):",
        b"\xff",
    ],
)
def test_a_line_that_is_no_event_becomes_a_remark_with_the_way_out(line: bytes) -> None:
    remark = parse(line)
    assert isinstance(remark, Note)
    assert line.decode(errors="replace")[:40] in remark.text
    assert "start it again" in remark.text


# Appends notes, each in two writes, as the boundary of a page makes them.
SLOW_WRITER = """
import os, sys, time
from perflab.trials.progress import PROGRESS_FILE, Note
descriptor = os.open(os.environ[PROGRESS_FILE], os.O_WRONLY | os.O_APPEND)
for number in range(3):
    line = Note(text=f"line {number}").model_dump_json().encode() + b"\\n"
    os.write(descriptor, line[:13])
    time.sleep(0.5)
    os.write(descriptor, line[13:])
"""


def test_a_follower_reads_only_whole_lines() -> None:
    events: list[Event] = []
    with followed(events.append):
        subprocess.run([sys.executable, "-c", SLOW_WRITER], check=True)
    assert events == [Note(text=f"line {number}") for number in range(3)]


def order(runs: Path) -> Order:
    return Order(plan=plan_of("synchronous_commit", blocks=1), runs=runs)


# Stands in for a conductor: it reads its order, prints the lines, and ends on "stop".
CONDUCTOR = """
import sys
sys.stdin.readline()
print({lines!r}, flush=True)
sys.stdin.readline()
"""


def stand_in(monkeypatch: pytest.MonkeyPatch, *lines: str, ends: bool = False) -> list[Any]:
    """Let a script print these lines in the conductor's place; return the list for its process."""
    script = CONDUCTOR.format(lines="\n".join(lines))
    script = script.rpartition("sys.stdin")[0] if ends else script
    started = subprocess.Popen

    children: list[Any] = []

    def popen(_command: list[str], **options: Any) -> Any:
        children.append(started([sys.executable, "-c", script], **options))
        return children[-1]

    monkeypatch.setattr(subprocess, "Popen", popen)
    return children


def test_an_unreadable_line_of_the_conductor_does_not_end_its_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in(monkeypatch, BEGUN.model_dump_json(), "Welcome to the library!", ends=True)
    events: list[Event] = []
    assert conduct(order(tmp_path), events.append) == Path(BEGUN.path)
    begun, remark = events
    assert begun == BEGUN
    assert "Welcome to the library!" in str(remark)


def test_a_conductor_that_dies_on_import_is_told_as_such(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "psutil.py").write_text("raise ImportError('planted')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    said = r"status 1 before .*nothing had been measured yet: .*, ImportError: planted$"
    with pytest.raises(ConductorLost, match=said):
        conduct(order(tmp_path), lambda _: None)


VARIANTS = ["a=url:http://127.0.0.1:1", "b=url:http://127.0.0.1:2"]


@pytest.mark.parametrize(
    ("plan", "command"),
    [
        (plan_of("synchronous_commit"), "run"),
        (plan_of("custom_service", variants=VARIANTS), "duel"),
    ],
)
def test_the_conductors_error_comes_back_under_its_class_with_the_command_that_goes_on(
    plan: RunPlan, command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    failure = Failed(kind="RunInterrupted", text="the user ended it")
    stand_in(monkeypatch, BEGUN.model_dump_json(), failure.model_dump_json(), ends=True)
    words = rf"the user ended it.*'perflab {command} --resume 20260102-a'"
    with pytest.raises(RunInterrupted, match=words):
        conduct(Order(plan=plan, runs=tmp_path), lambda _: None)


@pytest.mark.parametrize("why", [True, False])
def test_an_interrupt_of_the_explanation_leaves_the_answer_and_any_other_is_told(
    why: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in(monkeypatch, BEGUN.model_dump_json())
    events: list[Event] = []

    def show(event: Event) -> None:
        events.append(event)
        if event == BEGUN:
            raise KeyboardInterrupt

    asked = Order(plan=order(tmp_path).plan.model_copy(update={"why": why}), runs=tmp_path)
    if why:
        assert conduct(asked, show) == Path(BEGUN.path)
    else:
        with pytest.raises(RunInterrupted):
            conduct(asked, show)
    assert "interrupted" in str(events[-1])


TRIAL = TrialBegun(
    number=2, of=6, block=1, blocks=3, treatment="on", label="commit <on>", left_s=80.0
)
LOAD = LoadProgress(finished=400, of=1000, seconds=20.0, rate_rps=50.0, failed=3)


def test_a_terminals_line_says_live_and_counts_the_time_left_down() -> None:
    narrator = Narrator()
    narrator.line(TRIAL)
    text, stays = narrator.line(LOAD)
    assert not stays
    assert "trial 2/6, block 1/3: commit <on>, about 1:00 left  live: 400/1000 at 50/s, " in text
    assert text.endswith("3 failed")
    text, _ = narrator.line(LOAD.model_copy(update={"rate_rps": None}))
    assert text.endswith("live: 400/1000, 3 failed")


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
