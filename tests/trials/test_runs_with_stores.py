"""Runs of services with a store: the same state for every block, and no password anywhere."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from perflab.errors import ServiceFailed
from perflab.paths import open_dir, runs_dir
from perflab.recordings import Run
from perflab.stacks import cleanup
from perflab.trials.client import conduct
from perflab.trials.plan import Order, RunPlan
from perflab.trials.progress import Event, LoadProgress, Note, TrialDone
from tests.support.stored import plan
from tests.systems.custom.test_secret_duel import pieces


def order_of(asked: RunPlan) -> Order:
    return Order(plan=asked, backend="process", runs=runs_dir())


def nothing_is_left() -> bool:
    return cleanup.everything() == [] and not [*open_dir().glob("data/*/*")]


def test_every_block_begins_with_what_one_setup_left_and_no_password_is_recorded(
    tmp_path: Path,
) -> None:
    notes, told = tmp_path / "notes", list[Event]()
    run = Run(conduct(order_of(plan("postgres", notes, "fill 40", blocks=2)), told.append))
    assert run.record.state == "finished"
    lines = [line.split() for line in notes.read_text().splitlines()]
    assert sorted(words[0] for words in lines if words[1] == "filled") == ["new", "old"]
    found = [(words[0], int(words[2])) for words in lines if words[1] == "found"]
    assert sorted(found) == [("new", 40)] * 2 + [("old", 40)] * 2
    trials = run.trials()
    # The load wrote: else all begins would be equal anyway.
    assert (trials["requests"] > 2).all()
    texts = [event.text for event in told if isinstance(event, Note)]
    for step in ("setup of new", "rest of db", "copy of db"):
        assert any(text.startswith(f"{step} took ") for text in texts)
        assert run.record.notes["took_s"][step] > 0
    assert run.record.versions["store_postgres"]["server"].startswith("PostgreSQL 18")
    password = notes.read_text().split("perflab:")[1].split("@")[0]
    assert len(password) == 32
    shown = "".join(event.model_dump_json() for event in told)
    assert password not in shown
    for path in filter(Path.is_file, run.path.rglob("*")):
        assert not any(password.encode() in piece for piece in pieces(path)), path
    assert nothing_is_left()


def test_a_setup_that_fails_ends_the_run_before_anything_is_measured(tmp_path: Path) -> None:
    told: list[Event] = []
    with pytest.raises(
        ServiceFailed, match=r"'old': its setup \(.*fail\) ended with exit status 3"
    ):
        conduct(order_of(plan("redis", tmp_path / "notes", "fail")), told.append)
    assert not [event for event in told if isinstance(event, LoadProgress)]
    assert nothing_is_left()


@pytest.mark.slow
def test_a_store_that_dies_in_a_trial_is_named_and_the_next_start_has_its_data(
    tmp_path: Path,
) -> None:
    notes, done = tmp_path / "notes", list[TrialDone]()
    killed: list[str] = []

    def show(event: Event) -> None:
        if isinstance(event, TrialDone):
            done.append(event)
        if isinstance(event, LoadProgress) and not killed:
            (store,) = [item for item in cleanup.processes() if item.service == "db"]
            os.kill(int(store.identity), signal.SIGKILL)
            killed.append(store.identity)

    asked = plan("postgres", notes, "fill 40", seconds=3.0, blocks=1)
    run = Run(conduct(order_of(asked), show))
    assert run.record.state == "finished"
    failed = [event for event in done if event.state == "failed"]
    assert [reason.text.splitlines()[0] for event in failed for reason in event.reasons] == [
        "service 'db': was ended by SIGKILL"
    ]
    found = [line.split()[2] for line in notes.read_text().splitlines() if " found " in line]
    assert set(found) == {"40"}
    assert nothing_is_left()
