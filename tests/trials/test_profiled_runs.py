"""A profiled run on each backend: stacks of the service, none where nobody looked."""

from __future__ import annotations

import pytest

from perflab.experiments import experiment
from perflab.paths import runs_dir
from perflab.recordings import Run
from perflab.stacks import leftovers
from perflab.trials.client import conduct
from perflab.trials.conductor import Order

SMALL = {
    "blocks": 1, "codec": ["json"], "users": 10, "action_s": 0.1, "join_s": 0.01,
    "plateau_s": 1.0, "rate_hz": 200, "seed": 3,
}  # fmt: skip


@pytest.mark.slow
def test_the_profiler_sees_the_service_on_each_backend(backend_name: str) -> None:
    chosen = experiment("profile")
    plan = chosen.plan(chosen.check(SMALL))
    run = Run(conduct(Order(plan=plan, backend=backend_name, runs=runs_dir()), lambda _: None))
    trials = run.trials().set_index("factor_profiler", drop=False)
    assert set(trials["state"]) <= {"valid", "invalid"}
    assert (trials["messages_sent"] > 10 * 8).all()
    stacks = run.stacks(list(trials["trial_id"]))
    assert set(stacks["trial_id"]) == {trials.at["on", "trial_id"]}
    assert 10 < stacks["samples"].sum() < trials.at["on", "profiler_looks"]
    assert stacks["stack"].str.contains(r"\((?:chat/)?hub\.py\)").any()
    assert trials.at["on", "cpu_share_profiler"] > 0
    assert trials["cpu_share_profiler"].isna().to_dict() == {"on": False, "off": True}
    assert leftovers.everything() == []
