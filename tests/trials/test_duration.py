"""How long a run will take, by runs that were measured before."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from perflab.recordings import Run, newest_runs
from perflab.recordings.schema import read_record
from perflab.trials.duration import about, expected_s
from perflab.trials.plan import RunPlan
from tests.support.synthetic import write_run
from tests.systems.planned import plan_of

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def measured(plan: RunPlan, seconds: float, **changes: Any) -> Run:
    """Return a run of a plan that took so many seconds a trial."""
    loads = {item.name: item.workload.model_dump(mode="json") for item in plan.treatments}
    trials = plan.blocks * len(plan.treatments)
    record = {
        "experiment": plan.experiment,
        "state": "finished",
        "sessions": ["one"],
        "created_at": BEGAN.isoformat(),
        "finished_at": (BEGAN + timedelta(seconds=seconds * trials)).isoformat(),
        "blocks": plan.blocks,
        "treatments": plan.treatments,
        "whole": lambda name: {"workload": loads[name]},
        **changes,
    }
    return cast(Run, SimpleNamespace(record=SimpleNamespace(**record)))


@pytest.mark.parametrize(
    ("name", "before", "now", "seconds_a_trial"),
    [
        # A load with a length takes as much more as it is longer.
        ("client_overhead", {"duration_s": 2.0}, {"duration_s": 32.0}, 5.0 + 30.0),
        # Requests and time-outs end a load in proportion.
        ("sync_vs_async", {}, {"requests": 4_000, "warmup_requests": 8_000}, 4 * 5.0),
        ("registry_downloads", {"timeout_s": 30.0}, {"timeout_s": 300.0}, 10 * 5.0),
        # With fewer requests its services take as long to start.
        ("sync_vs_async", {}, {"requests": 100, "warmup_requests": 50}, 5.0),
    ],
)
def test_a_run_takes_as_long_as_an_earlier_one_by_the_sizes_of_their_loads(
    name: str, before: Mapping[str, Any], now: Mapping[str, Any], seconds_a_trial: float
) -> None:
    plan = plan_of(name, **now, blocks=7)
    trials = 7 * len(plan.treatments)
    earlier = measured(plan_of(name, **before, blocks=3), 5.0)
    assert expected_s(plan, [earlier]) == pytest.approx(seconds_a_trial * trials, rel=0.06)


def test_the_run_with_most_treatments_in_common_tells_and_of_these_the_first() -> None:
    plan = plan_of("registry_downloads")
    other = measured(plan_of("registry_downloads", sets=["pools"]), 50.0)
    newer, older = measured(plan, 7.0), measured(plan, 5.0)
    trials = plan.blocks * len(plan.treatments)
    runs = iter([other, newer, older])
    assert expected_s(plan, runs) == pytest.approx(7.0 * trials)
    assert list(runs) == [older], "no run is read after one that has all treatments"
    assert expected_s(plan, [other]) not in (None, pytest.approx(7.0 * trials))


@pytest.mark.parametrize(
    "changes", [{"experiment": "flush_map"}, {"state": "interrupted"}, {"sessions": ["one", "two"]}]
)
def test_other_experiments_and_runs_with_a_pause_tell_nothing(changes: Mapping[str, Any]) -> None:
    plan = plan_of("registry_downloads")
    assert expected_s(plan, [measured(plan, 5.0, **changes)]) is None


def test_only_runs_of_the_experiment_are_opened_and_none_that_cannot_be_read_stops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"2026010{day}T000000Z-chat_ladder-00000{day}" for day in range(1, 6)]
    for name in (*names, "20260109T000000Z-chat-000009", "20260109T000000Z-chat_ladders-000009"):
        write_run(tmp_path, experiment=name.split("-")[1], blocks=1, requests=40, run_id=name)
    newest, damaged, other_version, being_deleted, oldest = reversed(names)
    (tmp_path / damaged / "run.json").write_text("{")
    file = tmp_path / other_version / "run.json"
    file.write_text(file.read_text().replace('"schema_version": ', '"schema_version": 9'))
    (tmp_path / being_deleted / "run.json").unlink()
    (tmp_path / f".tmp-{oldest}").mkdir()
    opened: list[str] = []
    monkeypatch.setattr(
        "perflab.recordings.run.read_record",
        lambda path: (opened.append(path.name), read_record(path))[1],
    )
    assert [run.run_id for run in newest_runs("chat_ladder", tmp_path)] == [newest, oldest]
    assert opened == [*reversed(names)]
    assert list(newest_runs("chat_ladder", tmp_path / "nowhere")) == []


def test_lengths_of_time_are_in_words() -> None:
    lengths_s = [0.2, 75, 7_000, 4 * 3600]
    words = ["about 1 second", "about 75 seconds", "about 117 minutes", "about 4 hours"]
    assert list(map(about, lengths_s)) == words
