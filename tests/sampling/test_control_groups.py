"""Control groups of version 2, where the machine that runs the tests may only have version 1.

Memory is read in a folder that is laid out as the kernel lays it out: a fake at the edge. The CPU
account is the kernel's own, wherever version 2 is mounted in any way.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perflab.sampling import meters
from perflab.sampling.meters import CgroupMeter, ProcessTable

OWN = "user.slice/session-1.scope"
MIXED = Path("/sys/fs/cgroup/unified")
CPU_STAT = "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n"


def root_at(root: Path, monkeypatch: pytest.MonkeyPatch, groups: dict[str, str]) -> None:
    monkeypatch.setattr(meters, "GROUPS", root)
    monkeypatch.setattr(meters, "groups_of", lambda _: groups)


@pytest.fixture
def unified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of version 2 with our own group."""
    own = tmp_path / OWN
    own.mkdir(parents=True)
    (own / "cpu.stat").write_text(CPU_STAT)
    (own / "memory.current").write_text("8388608\n")
    root_at(tmp_path, monkeypatch, {"": f"/{OWN}"})
    return tmp_path


def test_cpu_and_memory_of_a_container_are_those_of_its_group(unified: Path) -> None:
    meter = CgroupMeter.of(os.getpid())
    found = meter.read(ProcessTable())
    assert found is not None
    assert (found.cpu_ns, found.memory_bytes) == (1_500_000_000, 8_388_608)
    (unified / OWN / "cgroup.procs").write_text("12\n34\n")
    assert meter.pids() == [12, 34]
    (unified / OWN / "cpu.stat").unlink()
    assert meter.read(ProcessTable()) is None


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A real group of version 2, which is mounted without controllers beside version 1."""
    root = MIXED if MIXED.is_dir() else meters.GROUPS
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


def test_the_kernels_own_account_of_version_2_is_read(group: Path) -> None:
    meter = CgroupMeter.of(os.getpid())
    burn = "import time\nwhile time.process_time() < 0.2: pass\nprint(time.process_time_ns())"
    # It enters the group before its first instruction, as services do.
    with (group / "cgroup.procs").open("w") as door:
        done = subprocess.run(
            ["sh", "-c", 'echo 0 >&0 && exec "$@" < /dev/null', "sh", sys.executable, "-c", burn],
            stdin=door, check=True,
            capture_output=True, text=True,
        )  # fmt: skip
    found = meter.read(ProcessTable())
    assert found is not None
    assert found.cpu_ns == pytest.approx(int(done.stdout), rel=0.25)
    assert meter.pids() == []
