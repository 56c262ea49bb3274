"""Limits on the descriptors of services hold in both backends from the first instruction."""

from __future__ import annotations

import re
import resource
from pathlib import Path

import pytest

from perflab.stacks.plan import Node, StackPlan
from tests.stacks.asking import started


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
