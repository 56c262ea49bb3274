"""Limits on the CPU of services, which containers keep and plain processes refuse."""

from __future__ import annotations

import pytest

from perflab.errors import BackendUnavailable
from perflab.host.placing import placement
from perflab.stacks import cleanup
from perflab.stacks.plan import LEAST_CPUS, Node, StackPlan
from perflab.stacks.process_backend import choose
from perflab.stacks.residents import Residents
from tests.stacks.test_containment import launched


def test_plain_processes_refuse_a_limit_before_anything_is_started() -> None:
    plan = StackPlan(nodes=(Node(name="echo", service="echo", cpus=0.2),))
    residents = Residents(choose("process"), {"it": plan}, placement(), "refused")
    with pytest.raises(BackendUnavailable, match=r"^the CPU limit of echo .*--backend docker"):
        residents.prepare()
    assert residents.images == {}, "nothing was prepared"
    assert cleanup.everything() == []


@pytest.mark.parametrize(("cpus", "quota_us"), [(LEAST_CPUS, 1_000), (0.29, 2_900), (2, 20_000)])
def test_a_container_gets_its_share_in_periods_of_10_ms(cpus: float, quota_us: int) -> None:
    options = launched("echo", cpus=cpus)[0].call_args.kwargs
    assert (options["cpu_period"], options["cpu_quota"]) == (10_000, quota_us)
    assert "cpu_quota" not in launched("echo")[0].call_args.kwargs, "no limit, no quota"
