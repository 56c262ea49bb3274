"""Control groups of version 2, where the machine that runs the tests may only have version 1.

Limits and memory are read and written in a folder that is laid out as the kernel lays it out: a
fake at the edge. The CPU account is the kernel's own, wherever version 2 is mounted in any way.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perflab.host import control_groups
from perflab.host.control_groups import memory_folder, memory_kills
from perflab.sampling import meters
from perflab.sampling.meters import CgroupMeter, ProcessTable
from perflab.stacks import memory_group
from perflab.stacks.memory_group import MIB, MemoryGroup

OWN = "user.slice/session-1.scope"
MIXED = Path("/sys/fs/cgroup/unified")
CPU_STAT = "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n"
EVENTS = "low 0\nhigh 0\nmax 31\noom 2\noom_kill 2\noom_group_kill 0\n"


def root_at(root: Path, monkeypatch: pytest.MonkeyPatch, groups: dict[str, str]) -> None:
    for module in (control_groups, memory_group):
        monkeypatch.setattr(module, "ROOT", root)
    for module in (control_groups, memory_group, meters):
        monkeypatch.setattr(module, "groups_of", lambda _: groups)


@pytest.fixture
def unified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of version 2 with our own group, two levels below one that hands memory down."""
    own = tmp_path / OWN
    own.mkdir(parents=True)
    for folder, handed in ((tmp_path, "cpu memory"), (own.parent, "cpu memory pids"), (own, "")):
        (folder / "cgroup.subtree_control").write_text(f"{handed}\n")
    (own / "cpu.stat").write_text(CPU_STAT)
    (own / "memory.current").write_text("8388608\n")
    root_at(tmp_path, monkeypatch, {"": f"/{OWN}"})
    return tmp_path


def test_a_limit_is_set_in_the_nearest_group_that_hands_the_controller_down(unified: Path) -> None:
    # The kernel makes the files with the folder.
    made = unified / "user.slice" / "perflab-it"
    made.mkdir()
    (made / "memory.swap.max").write_text("max\n")
    group = MemoryGroup("it", 64)
    assert group.folder == made
    assert (made / "memory.max").read_text() == str(64 * MIB)
    # Swap would widen the limit: version 2 bounds it apart.
    assert (made / "memory.swap.max").read_text() == "0"
    (made / "cgroup.procs").touch()
    with group.door() as door:
        os.write(door, b"0")
    assert (made / "cgroup.procs").read_text() == "0"
    (made / "memory.events").write_text(EVENTS)
    assert group.kills() == 2


def test_where_no_group_hands_the_controller_down_the_way_out_is_told(unified: Path) -> None:
    for folder in (unified, unified / "user.slice"):
        (folder / "cgroup.subtree_control").write_text("cpu\n")
    assert "no control group above this process hands the memory controller" in (
        memory_group.obstacle()
    )


def test_cpu_and_memory_of_a_container_are_those_of_its_group(unified: Path) -> None:
    meter = CgroupMeter.of(os.getpid())
    found = meter.read(ProcessTable())
    assert found is not None
    assert (found.cpu_ns, found.memory_bytes) == (1_500_000_000, 8_388_608)
    (unified / OWN / "cgroup.procs").write_text("12\n34\n")
    assert meter.pids() == [12, 34]
    assert memory_folder("self") == unified / OWN
    (unified / OWN / "cpu.stat").unlink()
    assert meter.read(ProcessTable()) is None


def test_kills_are_counted_in_both_versions(tmp_path: Path) -> None:
    assert memory_kills(tmp_path) == 0
    (tmp_path / "memory.events").write_text(EVENTS)
    assert memory_kills(tmp_path) == 2
    (tmp_path / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    assert memory_kills(tmp_path) == 3


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A real group of version 2, which is mounted without controllers beside version 1."""
    root = MIXED if MIXED.is_dir() else control_groups.ROOT
    made = root / f"perflab-test-{os.getpid()}"
    try:
        made.mkdir()
    except OSError as error:
        pytest.skip(f"no control group of version 2 can be made: {error}")
    if not (made / "cpu.stat").exists():
        made.rmdir()
        pytest.skip("control groups are of version 1 only")
    root_at(root, monkeypatch, {"": f"/{made.name}"})
    yield made
    made.rmdir()


@pytest.mark.measures
def test_the_kernels_own_account_of_version_2_is_read(group: Path) -> None:
    meter = CgroupMeter.of(os.getpid())
    burn = "import time\nwhile time.process_time() < 0.2: pass\nprint(time.process_time_ns())"
    # It enters the group before its first instruction, as services do.
    with (group / "cgroup.procs").open("w") as door:
        done = subprocess.run(
            memory_group.entering([sys.executable, "-c", burn]), stdin=door, check=True,
            capture_output=True, text=True,
        )  # fmt: skip
    found = meter.read(ProcessTable())
    assert found is not None
    assert found.cpu_ns == pytest.approx(int(done.stdout), rel=0.25)
    assert meter.pids() == []
