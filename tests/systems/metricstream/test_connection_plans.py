"""The life cycle as a plan, and what is counted and checked of a load of posts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from perflab.errors import ParameterError
from perflab.load.workload import ClosedLoop, OpenLoop
from perflab.systems import experiment
from perflab.systems.metricstream.connection_cost import (
    PARTS,
    miscounted,
    part_columns,
    success_share,
)
from perflab.systems.metricstream.rungs import BEFORE, CROSSED, PHASES, SETS
from perflab.trials.plan import RunPlan
from perflab.trials.recorded import resolved
from tests.load.planted import load_result
from tests.systems.metricstream.planted_connections import NUMBER, PLANTED_US, posts


def plan(**parameters: object) -> RunPlan:
    own = experiment("connection_lifecycle")
    return own.plan(own.check(parameters))


def test_every_phase_gets_the_published_load_and_phase_7_alone_reuses_connections() -> None:
    for treatment in plan().treatments:
        load = treatment.workload
        assert isinstance(load.arrivals, OpenLoop)
        assert [stage.rate for stage in load.arrivals.stages] == [2000.0]
        assert load.connections.most == 100
        reuses = treatment.levels["rung"] == "phase_7"
        assert load.connections.closing != reuses
        (server,) = treatment.stack.nodes
        assert (server.settings["keep_alive"] == "on") == reuses


def test_each_phase_changes_what_it_is_named_after_and_nothing_else() -> None:
    changed = {
        phase: {
            name for name, value in PHASES[phase].settings.items()
            if value != PHASES[before].settings[name]
        }
        for phase, before in BEFORE.items()
    }  # fmt: skip
    assert changed == {
        "phase_1": {"threading", "threads"}, "phase_2": {"threading"}, "phase_3": {"parser"},
        "phase_4": {"store"}, "phase_5": {"store"}, "phase_6": {"threading"},
        "phase_7": {"keep_alive"}, "long_linear": {"parser"},
    }  # fmt: skip


def test_no_size_is_compared_where_success_is_not_defined() -> None:
    every = plan(sets=list(SETS))
    assert every.contrasts
    for contrast in every.contrasts:
        assert contrast.published_ratio is None
        assert contrast.published_difference is None
    assert "metricstream.success" in {each.code for each in every.warnings}


def test_closed_loops_are_kept_up_until_their_last_answer() -> None:
    for treatment in plan(sets=["saturation"]).treatments:
        assert isinstance(treatment.workload.arrivals, ClosedLoop)
        assert treatment.workload.arrivals.keep_up


def test_a_limit_on_the_cpu_of_the_server_reaches_it_alone_and_is_on_the_record() -> None:
    every = plan(sets=["saturation", "naive"], server_cpus=0.2)
    for treatment in every.treatments:
        limits = {node.name: node.cpus for node in treatment.stack.nodes}
        assert limits.pop("metricstream") == 0.2
        assert set(limits.values()) <= {None}, "the naive client is not limited"
        written = resolved(treatment.stack)["nodes"][0]
        assert (written["name"], written["cpus"]) == ("metricstream", 0.2)
    (said,) = [each for each in every.warnings if each.code == "metricstream.cpu_limit"]
    assert "0.2 CPUs, by a quota of 2 ms of CPU time in every period of 10 ms" in said


def test_without_a_limit_the_server_has_all_of_its_cores_and_nothing_is_said() -> None:
    every = plan()
    assert {node.cpus for each in every.treatments for node in each.stack.nodes} == {None}
    assert "metricstream.cpu_limit" not in {each.code for each in every.warnings}


@pytest.mark.parametrize("cpus", [0, 0.09, -1, 65])
def test_a_limit_that_the_kernel_does_not_take_is_refused_before_the_run(cpus: float) -> None:
    with pytest.raises(ParameterError, match="server_cpus"):
        plan(server_cpus=cpus)


def test_a_pool_is_set_against_threads_with_and_without_keep_alive() -> None:
    found = [each for each in plan(sets=["interaction"]).contrasts if each.interaction]
    assert {each.response for each in found} == {"server_cpu_us_per_request", "mean_ms"}
    assert set(CROSSED) >= {side["rung"] for each in found for side in (each.numerator,)}


def test_the_parts_of_a_request_add_up_to_it_and_to_its_close() -> None:
    columns = part_columns(posts())
    found = [columns[f"part_{name}_ms"] for name in PARTS]
    assert found == pytest.approx([each / 1e3 for each in PLANTED_US])
    assert sum(columns[f"part_{name}_share"] for name in PARTS) == pytest.approx(1)


def test_an_older_recording_without_closing_times_has_no_shares() -> None:
    columns = part_columns(posts().drop(columns="close_ns"))
    assert columns["part_connect_ms"] == pytest.approx(0.04)
    assert columns["part_connect_share"] != columns["part_connect_share"]


def test_what_was_planned_and_never_sent_is_no_success(tmp_path: Path) -> None:
    result = load_result(tmp_path, np.linspace(1, 2, 90), errors={"timeout": 10}, unsent=10)
    assert success_share(result) == pytest.approx(0.8)


def test_a_server_that_took_fewer_samples_than_it_answered_for_is_found_out() -> None:
    requests = posts()
    assert miscounted(requests, 3 * NUMBER, metrics=3) == ""
    assert "took 149 samples" in miscounted(requests, 3 * NUMBER - 1, metrics=3)
    assert miscounted(requests, 3 * NUMBER + 1, metrics=3)
    # What timed out may have been taken or not.
    requests.loc[0, "error"] = "timeout"
    assert miscounted(requests, 3 * NUMBER, metrics=3) == ""
    assert miscounted(requests, 3 * NUMBER - 3, metrics=3) == ""
