"""Limits on the CPU and the descriptors of services."""

from __future__ import annotations

import re
import resource
import time
from pathlib import Path

import pytest

from perflab.errors import BackendUnavailable
from perflab.host.meters import GROUPS, folder_of, groups_of
from perflab.host.placing import placement
from perflab.stacks import cleanup
from perflab.stacks.asking import status_of
from perflab.stacks.plan import LEAST_CPUS, Node, StackPlan
from perflab.stacks.process_backend import choose
from perflab.stacks.residents import Residents
from tests.stacks.asking import started
from tests.stacks.test_containment import launched

CPUS = 0.2
BUSY_S = 1.5
# Each answer costs some tens of milliseconds of CPU.
WORK = 50_000


def echo(cpus: float | None) -> StackPlan:
    return StackPlan(nodes=(Node(name="echo", service="echo", settings={"work": WORK}, cpus=cpus),))


def stopped(pid: int) -> int:
    """Return how often the kernel stopped a service because its time was used up."""
    groups = groups_of(pid)
    folder = folder_of(groups, "cpu") or GROUPS / groups.get("", "/").lstrip("/")
    lines = (folder / "cpu.stat").read_text().splitlines()
    return int(dict(line.split() for line in lines).get("nr_throttled", 0))


@pytest.mark.slow
@pytest.mark.docker
def test_a_limited_service_is_stopped_when_its_time_is_used_up_and_a_free_one_is_not() -> None:
    plans = {"limited": echo(CPUS), "free": echo(None)}
    with started("docker", plans) as residents:
        for name in plans:
            residents.activate(name)
            port, ends = residents.instance(name, "echo").launch.port, time.monotonic() + BUSY_S
            while time.monotonic() < ends:
                assert status_of(port, "/", timeout_s=30) == 200
        stops = {name: stopped(residents.instance(name, "echo").pid) for name in plans}
    assert stops["limited"] > 0 == stops["free"]


def test_plain_processes_refuse_a_limit_before_anything_is_started() -> None:
    residents = Residents(choose("process"), {"it": echo(CPUS)}, placement(), "refused")
    with pytest.raises(BackendUnavailable, match=r"^the CPU limit of echo .*--backend docker"):
        residents.prepare()
    assert residents.images == {}, "nothing was prepared"
    assert cleanup.everything() == []


@pytest.mark.parametrize(("cpus", "quota_us"), [(LEAST_CPUS, 1_000), (0.29, 2_900), (2, 20_000)])
def test_a_container_gets_its_share_in_periods_of_10_ms(cpus: float, quota_us: int) -> None:
    options = launched("echo", cpus=cpus)[0].call_args.kwargs
    assert (options["cpu_period"], options["cpu_quota"]) == (10_000, quota_us)
    assert "cpu_quota" not in launched("echo")[0].call_args.kwargs, "no limit, no quota"


def model(max_files: int) -> StackPlan:
    settings = {"max_files": max_files}
    return StackPlan(nodes=(Node(name="model", service="llm_upstream", settings=settings),))


@pytest.mark.slow
def test_each_service_has_its_own_limit_soft_and_hard_and_reports_it(backend_name: str) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    plans = {str(files): model(files) for files in (70, 5000)}
    with started(backend_name, plans) as limited:
        for name in plans:
            limited.activate(name)
            assert str(limited.reported[name]["model"]["max_files"]) == name
            limits = Path(f"/proc/{limited.instance(name, 'model').pid}/limits").read_text()
            (soft_and_hard,) = re.findall(r"^Max open files +(\d+) +(\d+)", limits, re.MULTILINE)
            assert soft_and_hard == (name, name)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before, "the lab keeps its own limit"
