"""Plans of the life cycle, and the counts and checks of a load of posts."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from perflab.errors import ParameterError
from perflab.instruments.requests import miscounted, success_share
from perflab.load.clients.outcome import CUT_OFF_CODES
from perflab.load.workload import ClosedLoop, OpenLoop
from perflab.systems.metricstream.connection_cost import PARTS, part_columns
from perflab.systems.metricstream.rungs import BEFORE, PHASES
from perflab.trials.summary import resolved
from tests.load.planted import load_result
from tests.systems.metricstream.planted_connections import NUMBER, PLANTED_US, posts
from tests.systems.planned import plan_of

plan = partial(plan_of, "connection_lifecycle")


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


def test_a_cpu_limit_reaches_only_the_server_and_is_recorded() -> None:
    run_plan = plan(sets=["saturation", "naive"], server_cpus=0.2)
    for treatment in run_plan.treatments:
        if treatment.levels["load"] == "100 users":
            assert isinstance(treatment.workload.arrivals, ClosedLoop)
            assert treatment.workload.arrivals.keep_up
        limits = {node.name: node.cpus for node in treatment.stack.nodes}
        assert limits.pop("metricstream") == 0.2
        assert set(limits.values()) <= {None}, "the naive client is not limited"
        written = resolved(treatment.stack)["nodes"][0]
        assert (written["name"], written["cpus"]) == ("metricstream", 0.2)
    (remark,) = [
        warning for warning in run_plan.warnings if warning.code == "metricstream.cpu_limit"
    ]
    assert "0.2 CPUs, by a quota of 2 ms of CPU time in every period of 10 ms" in remark


@pytest.mark.parametrize("cpus", [0.09, 65])
def test_a_cpu_limit_that_the_kernel_does_not_accept_is_refused_before_the_run(cpus: float) -> None:
    with pytest.raises(ParameterError, match="server_cpus"):
        plan(server_cpus=cpus)


def test_the_parts_of_a_request_add_up_to_all_of_it() -> None:
    columns = part_columns(posts())
    parts_ms = [columns[f"part_{name}_ms"] for name in PARTS]
    assert parts_ms == pytest.approx([part_us / 1e3 for part_us in PLANTED_US])
    assert sum(columns[f"part_{name}_share"] for name in PARTS) == pytest.approx(1)


def test_requests_that_were_never_sent_are_no_successes(tmp_path: Path) -> None:
    errors = {"timeout": 10, "aborted": 10}
    result = load_result(tmp_path, np.linspace(1, 2, 90), errors=errors, unsent=10)
    assert success_share(result) == pytest.approx(0.7)
    assert success_share(result, CUT_OFF_CODES) == pytest.approx(70 / 90)


def test_a_server_that_took_fewer_samples_than_it_answered_for_is_detected() -> None:
    requests = posts()
    assert not miscounted(requests, 3 * NUMBER, of_each=3)
    assert "counted 149" in miscounted(requests, 3 * NUMBER - 1, of_each=3)[0]
    assert miscounted(requests, 3 * NUMBER + 1, of_each=3)
    # The server may or may not have taken a request that timed out.
    requests.loc[0, "error"] = "timeout"
    assert not miscounted(requests, 3 * NUMBER, of_each=3)
    assert not miscounted(requests, 3 * NUMBER - 3, of_each=3)
