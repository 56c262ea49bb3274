"""Loads on services that the lab did not start: where they may go."""

from __future__ import annotations

from perflab.load.workload import ClosedLoop, Request, Workload
from perflab.stacks.plan import StackPlan
from perflab.trials.plan import RunPlan, Target, Treatment, obstacles
from perflab.trials.summary import treatment_records


def treatment(target: Target | None) -> Treatment:
    load = Workload(request=Request(), arrivals=ClosedLoop(users=1, requests=20))
    return Treatment(name="a", label="a", levels={"at": "a"}, stack=StackPlan(nodes=()),
                     workload=load, target=target)  # fmt: skip


def plan(target: Target | None) -> RunPlan:
    return RunPlan(experiment="x", title="x", question="x", parameters={}, factors={"at": ("a",)},
                   treatments=(treatment(target),), contrasts=(), blocks=1, seed=1)  # fmt: skip


def test_a_host_that_nobody_named_is_refused_before_anything_starts() -> None:
    (problem,) = obstacles(plan(Target(url="http://service.test:80")))
    assert "'service.test' is not a target of this run" in problem
    assert obstacles(plan(Target(url="http://service.test", allowed=("service.test",)))) == []
    assert obstacles(plan(Target(url="http://127.0.0.1:8000"))) == []


def test_a_target_is_recorded_and_treatments_without_one_are_as_they_were() -> None:
    (with_one,), _ = treatment_records([treatment(Target(url="http://127.0.0.1:8000"))])
    (without,), _ = treatment_records([treatment(None)])
    assert "target" in with_one.parts
    assert "target" not in without.parts
