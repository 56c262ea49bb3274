"""Control groups of version 2, in a folder like the kernel's.

The machine that runs the tests may have only version 1.
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
    """Make a root of version 2 with the group of this process."""
    group = tmp_path / OWN
    group.mkdir(parents=True)
    (group / "cpu.stat").write_text(CPU_STAT)
    (group / "memory.current").write_text("8388608\n")
    monkeypatch.setattr(meters, "GROUPS", tmp_path)
    monkeypatch.setattr(meters, "groups_of", lambda _: {"": f"/{OWN}"})
    return tmp_path


def test_cpu_and_memory_of_a_container_are_those_of_its_group(unified: Path) -> None:
    meter = CgroupMeter(os.getpid())
    reading = meter.read(ProcessTable())
    assert reading is not None
    assert (reading.cpu_ns, reading.memory_bytes) == (1_500_000_000, 8_388_608)
    (unified / OWN / "cgroup.procs").write_text("12\n34\n")
    assert meter.members(ProcessTable()) == [12, 34]
    (unified / OWN / "cpu.stat").unlink()
    assert meter.read(ProcessTable()) is None
