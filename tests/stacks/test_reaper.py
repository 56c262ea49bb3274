"""The reapers: one outlives the other's end together with their owner's."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil
import pytest

from perflab.paths import project_root
from perflab.stacks.labels import Labels
from perflab.stacks.reaper import COUNT, Reapers
from perflab.stacks.stack_folders import make_data
from tests.stacks.asking import reapers_of, wait_until

OWNER = """
import time
from perflab.stacks.reaper import Reapers
reapers = Reapers("reaped")
print("watched", flush=True)
time.sleep(60)
"""


def both_reapers_of(pid: int) -> list[psutil.Process]:
    """Return both, once they are: a child has its parent's command line at first."""
    wait_until(lambda: len(reapers_of(pid)) == COUNT)
    return reapers_of(pid)


def sleeper(environment: dict[str, str], folder: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"],
        env=environment,
        cwd=folder,
        start_new_session=True,
    )


@pytest.mark.slow
def test_owner_and_a_reaper_killed_together_leave_no_process_and_no_folder() -> None:
    folder = make_data("reaped", "database")
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdout=subprocess.PIPE, cwd=project_root()
    )
    assert owner.stdout is not None
    mine, others = (Labels(stack, "it", "run").as_environment() for stack in ("reaped", "another"))
    labelled, other = (sleeper({**os.environ, **each}, "/") for each in (mine, others))
    # PostgreSQL's children are known by their working folder alone.
    inside = sleeper({}, str(folder))
    try:
        assert owner.stdout.readline() == b"watched\n"
        first, second = both_reapers_of(owner.pid)
        first.kill()
        owner.kill()
        for left in (labelled, inside):
            wait_until(lambda left=left: left.poll() is not None)  # type: ignore[misc]
        wait_until(lambda: not folder.exists() and not second.is_running())
        assert other.poll() is None
    finally:
        for process in (labelled, inside, other, owner):
            process.kill()
            process.wait()
        owner.stdout.close()


def test_a_killed_reaper_is_named() -> None:
    told: list[str] = []
    reapers = Reapers("nothing", told.append)
    first, _ = both_reapers_of(os.getpid())
    first.kill()
    wait_until(lambda: first.status() == psutil.STATUS_ZOMBIE)
    reapers.dismiss()
    assert told == [f"a reaper (pid {first.pid}) was ended by SIGKILL"]
