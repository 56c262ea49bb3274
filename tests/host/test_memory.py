"""The memory of processes counts what they share once among them, not once in each."""

from __future__ import annotations

import mmap
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perflab.host import memory
from perflab.host.memory import held_bytes
from perflab.host.meters import ProcessTable, ProcessTreeMeter

MIB = 1 << 20
TABLE, WORKERS = 32 * MIB, 3
Fork = Callable[[Callable[[], object]], int]


@pytest.fixture
def fork() -> Iterator[Fork]:
    """Fork a process that prepares something, and stops until the test is over."""
    pids: list[int] = []

    def forked(prepare: Callable[[], object]) -> int:
        if (pid := os.fork()) == 0:
            kept = prepare()  # noqa: F841
            os.kill(os.getpid(), signal.SIGSTOP)
            os._exit(0)
        pids.append(pid)
        os.waitpid(pid, os.WUNTRACED)
        return pid

    yield forked
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def filled() -> mmap.mmap:
    table = mmap.mmap(-1, TABLE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    table.write(b"x" * TABLE)
    return table


@pytest.mark.promise
def test_forked_workers_share_one_table_and_hold_it_once(fork: Fork) -> None:
    table = filled()
    # This process has a part of the table, too.
    with_parent = [os.getpid(), *(fork(lambda: table) for _ in range(WORKERS))]
    meter = ProcessTreeMeter(*with_parent)
    resident = meter.read(ProcessTable())
    assert resident is not None
    assert resident.memory_bytes > (WORKERS + 1) * TABLE, "resident memory counts it in each"
    shared = meter.held_bytes(ProcessTable())
    apart = ProcessTreeMeter(*(fork(filled) for _ in range(WORKERS))).held_bytes(ProcessTable())
    assert apart > WORKERS * TABLE
    assert resident.memory_bytes - shared > (WORKERS - 0.5) * TABLE


@pytest.mark.promise
def test_a_file_that_another_service_maps_is_held_whole_by_each(fork: Fork, tmp_path: Path) -> None:
    file = tmp_path / "model"
    file.write_bytes(b"x" * TABLE)

    def mapped() -> mmap.mmap:
        with file.open("rb") as opened:
            whole = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        whole[::4096]
        return whole

    workers = [fork(mapped) for _ in range(WORKERS)]
    one = fork(mapped)
    none = held_bytes([fork(lambda: None)])
    for service in (workers, [one]):
        assert TABLE < held_bytes(service) < 1.5 * TABLE + WORKERS * none


def test_a_process_that_has_ended_holds_nothing(fork: Fork) -> None:
    pid = fork(filled)
    assert held_bytes([pid]) > TABLE, "a stopped process can be read"
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert held_bytes([pid]) == 0, "nobody has waited for it yet"


def test_memory_that_the_kernel_does_not_tell_is_no_zero(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(PermissionError, match="smaps"):
        held_bytes([os.getpid()])
    monkeypatch.undo()
    monkeypatch.setattr(memory, "MAPPINGS", "smaps_of_a_later_kernel")
    with pytest.raises(FileNotFoundError):
        ProcessTreeMeter(os.getpid()).held_bytes(ProcessTable())
