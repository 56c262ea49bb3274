"""A run's record holds each treatment whole, and the settings that its services reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perflab.host.placing import placement
from perflab.load.workload import Workload
from perflab.recordings import RunRecord, check_same
from perflab.stacks.spec import load_service
from perflab.systems import experiment, names
from perflab.trials.conductor import new_record
from perflab.trials.summary import treatment_records
from tests.trials.fakes import BACKEND, Residents, Told


@pytest.mark.parametrize("name", names())
def test_every_experiment_is_recorded_with_all_settings_and_read_back(name: str) -> None:
    chosen = experiment(name)
    plan = chosen.plan(chosen.check({"seed": 1}))
    assert plan.contrasts
    begun = new_record(plan, BACKEND, placement())
    # Otherwise nobody could resume a run of it.
    check_same(RunRecord.model_validate_json(begun.model_dump_json()), begun)
    records, parts = treatment_records(plan.treatments)
    for treatment, written in zip(plan.treatments, records, strict=True):
        stack = parts[written.parts["stack"]]
        for node in stack["nodes"]:
            assert set(node["settings"]) == set(load_service(node["service"]).settings)
        for node in treatment.stack.nodes:
            shown = next(item for item in stack["nodes"] if item["name"] == node.name)
            assert node.settings.items() <= shown["settings"].items()
        assert Workload.model_validate(parts[written.parts["workload"]]) == treatment.workload


def test_the_settings_that_services_report_are_recorded_for_every_treatment(tmp_path: Path) -> None:
    run = Told(tmp_path, Residents(says={"workers": 2, "pool_per_worker": 4})).go()
    assert run.record.reported_by("a") == {"echo": {"workers": 2, "pool_per_worker": 4}}
    assert run.record.reported_by("a") == run.record.reported_by("b")
    assert set(run.trials()["state"]) == {"valid"}
    assert json.loads((run.path / "run.json").read_text())["reported"].keys() == {"a", "b"}


def test_a_trial_whose_services_report_other_settings_is_refused(tmp_path: Path) -> None:
    says = {"workers": 2, "pool_per_worker": 4}
    residents = Residents(says=says)
    activate = residents.activate
    activated: list[str] = []

    def changing(name: str) -> None:
        activated.append(name)
        if len(activated) == 3:
            says["pool_per_worker"] = 3
        activate(name)

    residents.activate = changing  # type: ignore[method-assign]
    residents.says = says
    trials = Told(tmp_path, residents).go().trials()
    assert list(trials["state"]) == ["valid", "valid", "invalid", "invalid"]
    for reasons in trials["reasons"][2:]:
        assert [reason.code for reason in reasons] == ["stack.settings"]
        assert "echo.pool_per_worker (4 -> 3)" in reasons[0]
