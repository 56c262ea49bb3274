"""Limits on the descriptors of services, which hold in both backends from the first instruction."""

from __future__ import annotations

import os
import re
import resource
from pathlib import Path

import pytest

from perflab.host.placing import placement
from perflab.stacks import leftovers
from perflab.stacks.backend import Launch
from perflab.stacks.choice import choose
from perflab.stacks.labels import Labels
from perflab.stacks.plan import Node, StackPlan
from perflab.stacks.residents import Residents
from perflab.stacks.spec import Limits, load_service


def model(max_files: int) -> StackPlan:
    settings = {"max_files": max_files}
    return StackPlan(nodes=(Node(name="model", service="llm_upstream", settings=settings),))


@pytest.mark.slow
def test_each_has_its_own_limit_soft_and_hard_and_shows_it(backend_name: str) -> None:
    own = resource.getrlimit(resource.RLIMIT_NOFILE)
    named = {str(files): model(files) for files in (70, 5000)}
    limited = Residents(choose(backend_name), named, placement(), f"files-{os.getpid()}")
    limited.prepare()
    limited.start()
    try:
        for name in named:
            limited.activate(name)
            assert str(limited.reported[name]["model"]["max_files"]) == name
            limits = Path(f"/proc/{limited.instance(name, 'model').pid}/limits").read_text()
            found = re.search(r"^Max open files +(\d+) +(\d+)", limits, re.MULTILINE)
            assert found is not None
            assert found.groups() == (name, name)
    finally:
        limited.stop()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == own, "the lab's own stays"
    assert leftovers.everything() == []


def launch(files: str, **settings: int) -> Launch:
    spec = load_service("llm_upstream").model_copy(update={"limits": Limits(files=files)})
    labels = Labels("it", "model", "run", 1)
    return Launch(spec, labels, settings, {}, 1, 1, (0,), "secret")


def test_a_service_without_a_limit_keeps_what_the_backend_gives() -> None:
    assert launch("").max_files() is None
    assert launch("{max_files}", max_files=64).max_files() == 64
