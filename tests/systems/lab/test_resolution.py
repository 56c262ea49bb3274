"""The lab's resolution in runs with planted effects, and the client's stalls that it plants."""

from __future__ import annotations

import math
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from perflab.errors import AnalysisError
from perflab.recordings import Run
from perflab.systems.lab.experiments.lab_check import EXPERIMENT, StalledClient
from perflab.systems.lab.resolution import (
    copies_noise,
    false_alarms,
    known_effects,
    power_here,
    refused,
    work_share,
)
from tests.support.children import SLEEPS, child
from tests.support.planted_trial import APP_SHARE, Planted
from tests.support.synthetic import write_run

APP = {"app": 0.8}
# The planted share of work in the time at the service, times the mean of its spread; 0.2% of the
# response time are outside of the service.
WORK = APP_SHARE * 0.8 * (0.9 + 1.05) / 2


def lab_check(tmp_path, **changes) -> Run:
    services = [("A1", 1.0), ("A2", 1.0), ("A3", 1.0), ("A4", 1.0), ("+20%", 1 / 1.18)]
    treatments = tuple(
        Planted({"service": level}, ratio, level, dict(APP)) for level, ratio in services
    )
    options = {"blocks": 12, "noise": 0.02, "requests": 60, **changes}
    return write_run(
        tmp_path, treatments=treatments, experiment="lab_check", contrasts=[], **options
    )


def test_copies_are_compared_without_using_a_trial_twice(tmp_path) -> None:
    rate = false_alarms(lab_check(tmp_path), blocks=6)
    assert rate.n == 4
    assert rate.hits <= 1


def test_planted_effects_are_compared_with_their_effect_on_the_response(tmp_path) -> None:
    run = lab_check(tmp_path)
    table = known_effects(run, blocks=6).set_index("service")
    row = table.loc["+20%"]
    assert row["planted"] == pytest.approx(1.2)
    assert row["expected"] == pytest.approx(1 + 0.2 * WORK, abs=0.002)
    assert row["low"] < 1.18 < row["high"]
    assert row["called_different"].startswith("2 of 2")
    assert (table.loc[["A2", "A3", "A4"], "expected"] == 1).all()


@pytest.mark.parametrize("planted", [0.8, 0.4])
def test_the_share_of_work_is_that_of_the_copies(tmp_path, planted: float) -> None:
    treatments = [Planted({"service": "A1"}, 1.0, "", {"app": planted}),
                  Planted({"service": "+20%"}, 0.8, "", {"app": 1.0})]  # fmt: skip
    run = write_run(tmp_path, treatments=treatments, blocks=4, contrasts=[])
    assert work_share(run) == pytest.approx(WORK * planted / 0.8, abs=0.005)


def test_refusals_are_counted_apart_for_the_overloaded_and_the_healthy(tmp_path) -> None:
    levels = ("A1", "overload", "stalled: open loop, 20 ms")
    treatments = tuple(Planted({"service": level}) for level in levels)
    run = write_run(
        tmp_path, treatments=treatments, blocks=4, contrasts=[],
        invalid=[*((block, 1) for block in range(3)), *((block, 2) for block in range(4))],
    )  # fmt: skip
    rates = {
        row["client"]: row["refused"].partition(":")[0] for row in refused(run).to_dict("records")
    }
    assert rates == {
        "overload": "3 of 4", "stalled: open loop, 20 ms": "4 of 4", "healthy": "0 of 4",
    }  # fmt: skip


@pytest.mark.parametrize("process_spread", [0.0, 0.1])
def test_the_noise_of_copies_includes_that_of_their_processes(
    copies: Run, process_spread: float
) -> None:
    trials = copies.trials()
    random = np.random.default_rng(3)
    names = trials["treatment"].unique()
    speeds = dict(zip(names, np.exp(process_spread * random.normal(size=len(names))), strict=True))
    run = Run(copies.path)
    rates = trials["throughput_rps"] * trials["treatment"].map(speeds)
    run._trials = trials.assign(throughput_rps=rates)
    assert copies_noise(run, "throughput_rps") == pytest.approx(
        math.hypot(0.02, process_spread), rel=0.4
    )


def test_too_few_trials_give_no_power_and_no_false_alarms(tmp_path) -> None:
    run = lab_check(tmp_path, blocks=1)
    assert power_here(run).empty
    assert false_alarms(run).text() == "no case"


def test_a_run_without_answers_is_an_error(tmp_path) -> None:
    run = lab_check(tmp_path, blocks=1, failed=[(0, index) for index in range(5)])
    with pytest.raises(AnalysisError, match="no successful request"):
        work_share(run)
    assert known_effects(run).empty


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Run:
    treatments = tuple(Planted({"service": f"A{place}"}, 1.0) for place in range(1, 9))
    return write_run(
        tmp_path_factory.mktemp("copies"), treatments=treatments, experiment="lab_check",
        contrasts=[], blocks=8, noise=0.02, requests=40,
    )  # fmt: skip


def test_power_is_computed_at_the_noise_of_the_run(copies: Run) -> None:
    table = power_here(copies)
    assert list(table["true difference"]) == ["2%", "5%", "10%", "25%"]
    assert float(table["8 blocks"].iloc[-1].rstrip("%")) >= 80
    assert table["noise of a trial"].iloc[0] == f"{copies_noise(copies):.1%}"


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_the_client_is_stopped_repeatedly_and_left_running() -> None:
    with child(SLEEPS) as client:
        scene: Any = SimpleNamespace(client_pids=(client.pid,))
        sensor = StalledClient(stall_ms=20, pause_ms=20).sensor(scene)
        load: Any = None
        sensor.begin()
        states = []
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            states.append(state(client.pid))
            if sensor.observe(load).columns["planted_stalls"] >= 3:
                break
            time.sleep(0.002)
        sensor.end()
        assert "T" in states
        assert set(states) - {"T"}
        assert state(client.pid) != "T"


def test_every_length_is_planted_in_a_closed_and_in_an_open_loop() -> None:
    parameters = EXPERIMENT.parameters.model_validate({"stalls_ms": [20, 150]})
    faults = {
        treatment.label: instrument
        for treatment in EXPERIMENT.treatments(parameters)
        for instrument in treatment.instruments
        if isinstance(instrument, StalledClient)
    }
    assert list(faults) == [
        "stalled: closed loop, 20 ms", "stalled: open loop, 20 ms",
        "stalled: closed loop, 150 ms", "stalled: open loop, 150 ms",
    ]  # fmt: skip
    shares = [fault.stall_ms / (fault.stall_ms + fault.pause_ms) for fault in faults.values()]
    assert shares == pytest.approx([0.2] * 4)
