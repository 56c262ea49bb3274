"""Control groups of version 2, where the machine that runs the tests may only have version 1.

They are read in a folder that is laid out as the kernel lays it out: a fake at the edge.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perflab.host import meters
from perflab.host.meters import CgroupMeter, ProcessTable

OWN = "user.slice/session-1.scope"
CPU_STAT = "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n"


@pytest.fixture
def unified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of version 2 with our own group."""
    own = tmp_path / OWN
    own.mkdir(parents=True)
    (own / "cpu.stat").write_text(CPU_STAT)
    (own / "memory.current").write_text("8388608\n")
    monkeypatch.setattr(meters, "GROUPS", tmp_path)
    monkeypatch.setattr(meters, "groups_of", lambda _: {"": f"/{OWN}"})
    return tmp_path


def test_cpu_and_memory_of_a_container_are_those_of_its_group(unified: Path) -> None:
    meter = CgroupMeter(os.getpid())
    found = meter.read(ProcessTable())
    assert found is not None
    assert (found.cpu_ns, found.memory_bytes) == (1_500_000_000, 8_388_608)
    (unified / OWN / "cgroup.procs").write_text("12\n34\n")
    assert meter.members(ProcessTable()) == [12, 34]
    (unified / OWN / "cpu.stat").unlink()
    assert meter.read(ProcessTable()) is None
