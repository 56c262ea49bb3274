"""How long a run will still take, as it says itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perflab.systems import experiment
from perflab.trials import session
from perflab.trials.events import Event, Finished, TrialDone
from perflab.trials.session import Remaining, Session
from perflab.trials.time_left import TimeLeft
from perflab.trials.trial import TrialTables

TRIAL_S, START_S, STOP_S = 0.02, 0.10, 0.05


def test_nothing_is_promised_before_the_first_trial() -> None:
    assert TimeLeft(starts_s=[3.0]).estimate_s(["on"], restarts=2) is None


def test_treatments_are_estimated_from_their_own_trials_and_unknown_ones_from_all() -> None:
    left = TimeLeft()
    left.took("slow", 10.0)
    left.took("slow", 12.0)
    left.took("fast", 2.0)
    assert left.estimate_s(["slow", "fast"], restarts=0) == pytest.approx(13.0)
    assert left.estimate_s(["new"], restarts=0) == pytest.approx(8.0)


def test_restarts_and_the_last_stop_count() -> None:
    left = TimeLeft(starts_s=[4.0, 6.0], stops_s=[1.0])
    left.took("on", 2.0)
    assert left.estimate_s(["on", "on"], restarts=3) == pytest.approx(4.0 + 3 * 6.0 + 1.0)


class _Residents:
    """Services that take their time to stop and start, and nothing else."""

    start_s = START_S
    reported: Mapping[str, Any] = {}

    def stop(self) -> None:
        time.sleep(STOP_S)

    def start(self) -> None:
        time.sleep(START_S)


class _Writer:
    # Its blocks are not added until all is decided.
    record = SimpleNamespace(until_decided=None)

    def commit_trial(self, row: dict[str, Any], *_tables: object) -> Path:
        time.sleep(TRIAL_S)
        return Path(str(row["trial_id"]))


def events_of_a_run(monkeypatch: pytest.MonkeyPatch, blocks: int) -> list[tuple[float, Event]]:
    """Return every event with its time; only services, load and disk are stood in for."""
    chosen = experiment("synchronous_commit")
    plan = chosen.plan(chosen.check({"blocks": blocks, "fresh_blocks": 1}))

    def measured(_bench: object, _treatment: object, row: dict[str, Any]) -> TrialTables:
        time.sleep(TRIAL_S)
        return TrialTables({**row, "state": "valid", "reasons": []})

    monkeypatch.setattr(session, "measure", measured)
    # What is read back from disk at the end.
    monkeypatch.setattr(session.Session, "_note_unsteady", lambda _: None)
    bench = SimpleNamespace(
        residents=_Residents(), interrupted=lambda: "", before_trial=lambda: None
    )
    seen: list[tuple[float, Event]] = []
    emit: Callable[[Event], None] = lambda event: seen.append((time.monotonic(), event))  # noqa: E731
    Session(plan, _Writer(), bench, emit).run(Remaining(tuple(range(blocks))))  # type: ignore[arg-type]
    seen.append((time.monotonic(), Finished()))
    return seen


@pytest.mark.alone
def test_what_a_run_says_is_left_is_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = events_of_a_run(monkeypatch, blocks=6)
    end = seen[-1][0] + STOP_S
    told = [(at, event.left_s) for at, event in seen if isinstance(event, TrialDone)]
    # From the second block on, when one stop and one start have been seen.
    treatments = len(told) // 6
    assert len(told) == 6 * treatments
    for at, left_s in told[treatments:]:
        assert left_s == pytest.approx(end - at, rel=0.5, abs=0.1)
