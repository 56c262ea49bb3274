"""Processes as the kernel knows them."""

from __future__ import annotations

import os
import subprocess
import sys

from perflab.host.processes import busiest, program_name
from tests.support.children import child

WORKS = """
import subprocess, sys, time
if sys.argv[2:]:
    subprocess.run([sys.executable, "-c", sys.argv[2], sys.argv[1]], check=True)
else:
    while time.process_time() < float(sys.argv[1]):
        pass
print(flush=True)
time.sleep(60)
"""
BURNS = """
import sys, time
while time.process_time() < float(sys.argv[1]):
    pass
"""


def test_the_busiest_process_is_the_one_that_worked_itself() -> None:
    with child(WORKS, "0.4") as works, child(WORKS, "0.8", BURNS) as waits:
        assert busiest([waits.pid, works.pid]) == works.pid


def test_a_process_that_has_ended_is_not_the_busiest() -> None:
    ended = subprocess.Popen([sys.executable, "-c", BURNS, "0.4"])
    # It was not waited for, so the kernel keeps its times.
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    with child(WORKS, "0") as lives:
        assert busiest([ended.pid, lives.pid]) == lives.pid
    assert program_name(ended.pid) == ""
    assert busiest([ended.pid]) is None
    ended.wait()
    assert busiest([ended.pid]) is None
