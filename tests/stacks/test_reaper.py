"""The reapers; that they end what their owner left, real services show (test_stacks)."""

from __future__ import annotations

import os

import psutil

from perflab.stacks.reaper import COUNT, Reapers
from tests.stacks.asking import reapers_of, wait_until


def test_a_killed_reaper_is_named() -> None:
    told: list[str] = []
    reapers = Reapers("nothing", told.append)
    # A child has its parent's command line at first.
    wait_until(lambda: len(reapers_of(os.getpid())) == COUNT)
    first, _ = reapers_of(os.getpid())
    first.kill()
    wait_until(lambda: first.status() == psutil.STATUS_ZOMBIE)
    reapers.dismiss()
    assert told == [f"a reaper (pid {first.pid}) was ended by SIGKILL"]
