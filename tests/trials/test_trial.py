"""One trial with fake services and load workers."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from perflab.errors import LoadError, ServiceFailed, SettingRefused
from perflab.host.meters import CgroupMeter
from perflab.load.workload import OpenLoop, Request, Stage, Workload
from perflab.trials.trial import TrialTables, measure
from tests.trials.fakes import REQUESTS, Residents, bench, treatment


def measured(folder: Path, residents: Residents | None = None, **load: Any) -> TrialTables:
    return measure(bench(folder, residents, **load), treatment("a"), {"trial_id": "t"})


def test_a_trial_without_a_fault_is_valid_and_holds_its_measurements(tmp_path: Path) -> None:
    trial = measured(tmp_path)
    assert (trial.row["state"], trial.row["reasons"]) == ("valid", [])
    assert trial.row["requests"] == REQUESTS
    assert trial.row["p50_ms"] == pytest.approx(50)
    assert trial.row["throughput_rps"] == pytest.approx(100, rel=0.02)
    assert trial.requests is not None
    assert len(trial.requests) == REQUESTS
    assert trial.samples is not None
    assert {"echo", "client", "lab"} <= set(trial.samples["service"])
    assert trial.services_whole
    assert not any(tmp_path.iterdir()), "raw rows are kept nowhere else"


@pytest.mark.promise
def test_a_container_that_ended_before_the_load_fails_the_trial_with_its_log(
    tmp_path: Path,
) -> None:
    class Ended(Residents):
        def active(self, _name: str) -> Any:
            return {"echo": SimpleNamespace(meter=lambda: CgroupMeter(0))}

    death = ServiceFailed("echo", "its container exited with status 1", "planted")
    trial = measured(tmp_path, Ended(dies=death))
    assert trial.row["state"] == "failed"
    assert [reason.code for reason in trial.row["reasons"]] == ["service.failed"]
    assert "planted" in trial.row["reasons"][0].text


@pytest.mark.promise
def test_response_times_of_a_trial_count_from_the_planned_instant(tmp_path: Path) -> None:
    def waited(rows: np.ndarray) -> None:
        rows["planned_ns"] -= 5_000_000
        rows["sent_ns"] += 5_000_000

    row = measured(tmp_path, facts={"change": waited}).row
    times = [row[name] for name in ("mean_ms", "p50_ms", "service_mean_ms")]
    assert [*times, row["connection_wait_p50_ms"]] == pytest.approx([55, 55, 45, 5])


@pytest.mark.promise
def test_it_goes_in_order_from_activation_to_the_probe_after_the_load(tmp_path: Path) -> None:
    residents = Residents()
    trial = measured(tmp_path, residents)
    assert residents.notes == [
        "workers start", "activate a", "reset a", "probe", "load", "probe",
    ]  # fmt: skip
    assert trial.row["flush_us"] == [100.0, 300.0, 100.0, 300.0]
    assert trial.row["flush_p50_us"] == 200.0
    assert trial.row["cpu_probe_before_ms"] > 0
    assert trial.row["cpu_probe_after_ms"] > 0


@pytest.mark.parametrize(
    ("facts", "reason", "side"),
    [
        ({"errors": {"ports": 1}}, "requests failed on the client's side", "client"),
        ({"errors": {"closed": 50}}, "50 of 500 requests failed", "server"),
        ({"clock_step_ms": 50.0}, "the machine slept", "unknown"),
    ],
)
@pytest.mark.promise
def test_what_the_generator_holds_against_itself_makes_the_trial_invalid(
    tmp_path: Path, facts: dict[str, Any], reason: str, side: str
) -> None:
    trial = measured(tmp_path, facts=facts)
    assert trial.row["state"] == "invalid"
    assert reason in trial.row["reasons"][0]
    assert [item.side for item in trial.row["reasons"]] == [side]
    assert trial.requests is not None, "it is recorded all the same"


def drifting(share: float) -> dict[str, Any]:
    """Return the facts of a load whose response times change by a share of 50 ms."""

    def drift(rows: np.ndarray) -> None:
        spent_ns = 50e6 * (1 + np.linspace(-share / 2, share / 2, len(rows)))
        rows["planned_ns"] = rows["started_ns"] = rows["sent_ns"] = rows["done_ns"] - spent_ns

    return {"change": drift}


@pytest.mark.parametrize("share", [0.08, 0.15, -0.15, -0.8])
def test_a_closed_loop_that_drifts_is_valid_and_records_its_drift(
    tmp_path: Path, share: float
) -> None:
    trial = measured(tmp_path, facts=drifting(share))
    assert trial.row["state"] == "valid"
    assert trial.row["mean_ms"] == pytest.approx(50, rel=0.01)
    # A straight line through the logs of ten windows, from the middle to the last of them.
    logs = np.log(1 + share * np.linspace(-0.45, 0.45, 10))
    expected = np.polyfit(np.arange(10), logs, 1)[0] * 4.5
    assert trial.row["mean_ms_drift"] == pytest.approx(expected, rel=0.02)
    assert trial.row["p50_ms_drift"] == pytest.approx(expected, rel=0.02)
    assert trial.row["throughput_rps_drift"] == pytest.approx(0, abs=0.03)
    assert ("load.trend" in {item.code for item in trial.row["warnings"]}) == (abs(share) > 0.1)


@pytest.mark.parametrize(("share", "state"), [(0.2, "valid"), (0.6, "invalid"), (-0.6, "valid")])
@pytest.mark.promise
def test_an_open_loop_whose_queue_grows_is_not_used_and_says_so_once(
    tmp_path: Path, share: float, state: str
) -> None:
    open_loop = OpenLoop(stages=(Stage(rate=100, duration_s=5),))
    workload = Workload(request=Request(node="echo"), arrivals=open_loop)
    queueing = treatment("a").model_copy(update={"workload": workload})
    row = measure(bench(tmp_path, facts=drifting(share)), queueing, {"trial_id": "t"}).row
    codes = [[item.code for item in row[kind]] for kind in ("reasons", "warnings")]
    assert row["state"] == state
    assert codes[0] == (["load.trend"] if state == "invalid" else [])
    assert ("load.trend" in codes[1]) == (state == "valid")


@pytest.mark.parametrize(("share", "is_told"), [(0.003, False), (0.03, True)])
def test_services_without_load_that_use_more_than_a_hundredth_of_a_core_are_told(
    tmp_path: Path, share: float, is_told: bool
) -> None:
    trial = measured(tmp_path, Residents(idle_cpu=share), takes_s=0.3)
    assert trial.row["state"] == "valid"
    assert trial.row["idle_cpu_share"] == pytest.approx(share, rel=0.6)
    texts = [item.text for item in trial.row["warnings"] if item.code == "stack.idle_cpu"]
    assert len(texts) == is_told
    assert all(text.startswith("services that got no load used ") for text in texts)


@pytest.mark.promise
def test_a_service_that_lost_a_process_makes_the_trial_invalid_and_is_not_used_again(
    tmp_path: Path,
) -> None:
    trial = measured(tmp_path, Residents(lose={"inference": "process 7 (worker)"}))
    assert trial.row["state"] == "invalid"
    (reason,) = trial.row["reasons"]
    assert reason.text.startswith("service 'inference' lost process 7 (worker) during the trial")
    assert (reason.code, reason.side) == ("service.lost_processes", "server")
    assert not trial.services_whole


@pytest.mark.parametrize(("counted", "state"), [(REQUESTS, "valid"), (REQUESTS - 1, "invalid")])
@pytest.mark.promise
def test_the_server_must_have_counted_what_the_client_was_told(
    tmp_path: Path, counted: int, state: str
) -> None:
    trial = measured(tmp_path, Residents(counted=counted))
    assert (trial.row["state"], trial.row["server_count"]) == (state, counted)


@pytest.mark.parametrize(
    ("error", "side"),
    [
        (LoadError("a load worker died"), "client"),
        (ServiceFailed("echo", "died", "last words"), "server"),
        (SettingRefused("runs with other settings"), "unknown"),
    ],
)
def test_a_failure_is_a_failed_trial_with_its_reason_and_fresh_workers_next_time(
    tmp_path: Path, error: Exception, side: str
) -> None:
    residents = Residents()
    trial = measured(tmp_path, residents, fails=error)
    assert trial.row["state"] == "failed"
    assert [(item.text, item.side) for item in trial.row["reasons"]] == [(str(error), side)]
    assert not trial.services_whole
    assert residents.notes[-1] == "workers end"


@pytest.mark.promise
def test_a_service_that_dies_under_load_ends_it_and_what_came_is_kept(tmp_path: Path) -> None:
    residents = Residents(dies=ServiceFailed("echo", "died", "last words"))
    began = time.monotonic()
    facts = {"delivered_s": 0.4 + np.arange(400) * 0.005}
    trial = measured(tmp_path, residents, takes_s=60.0, facts=facts)
    assert time.monotonic() - began < 20, "it is looked for every second"
    assert trial.row["state"] == "failed"
    assert "last words" in trial.row["reasons"][0]
    assert trial.requests is not None
    assert len(trial.requests) == REQUESTS
    assert len(trial.others["messages"]) == 400
    assert trial.samples is not None
