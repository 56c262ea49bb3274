"""The reapers; test_stacks shows with real services that they remove a stack."""

from __future__ import annotations

import os

import psutil

from perflab.stacks.reaper import COUNT, Reapers
from tests.stacks.asking import reapers_of, wait_until


def test_a_killed_reaper_is_named() -> None:
    lines: list[str] = []
    reapers = Reapers("nothing", lines.append)
    # At first a child has its parent's command line.
    wait_until(lambda: len(reapers_of(os.getpid())) == COUNT)
    first, _ = reapers_of(os.getpid())
    first.kill()
    wait_until(lambda: first.status() == psutil.STATUS_ZOMBIE)
    reapers.dismiss()
    assert lines == [f"a reaper (pid {first.pid}) was ended by SIGKILL"]
