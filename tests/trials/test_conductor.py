"""The conductor prepares a run on all cores, and keeps to its own from the first service on."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from perflab.errors import StackError
from perflab.host.placing import placement
from perflab.host.processes import bound_to
from perflab.trials import conductor
from perflab.trials.plan import Order
from tests.trials.fakes import plan


class Residents:
    """Services that cannot start; ``cores`` has those of their preparation and of their start."""

    def __init__(self) -> None:
        self.images: dict[str, str] = {}
        self.versions: dict[str, dict[str, str]] = {}
        self.cores: list[set[int]] = []

    def prepare(self) -> None:
        self.cores.append(os.sched_getaffinity(0))

    def start(self) -> None:
        self.cores.append(os.sched_getaffinity(0))
        raise StackError("it cannot start")

    def end(self) -> None:
        """Have nothing to end."""


def test_a_run_is_prepared_on_all_cores_and_measured_from_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    residents, nobody = Residents(), Mock()
    monkeypatch.setattr(conductor, "Residents", lambda *_: residents)
    monkeypatch.setattr(conductor, "Reapers", nobody)
    monkeypatch.setattr("perflab.stacks.cleanup.docker_client", lambda: None)
    order = Order(plan=plan(), backend="process", runs=tmp_path)
    asker: Any = nobody
    cores, own = os.sched_getaffinity(0), placement().sampler
    with bound_to(cores), pytest.raises(StackError, match="it cannot start"):
        conductor.Conductor(order, asker, io.StringIO()).run()
    assert residents.cores == [cores, {*own}]
