"""Cells over hosts with networks, locks and folders of their own, of which one is lost."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from perflab.paths import project_root
from tests.cluster.namespaces import why_not


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_each_cell_is_published_once_and_no_host_measures_two_though_a_worker_is_killed() -> None:
    if why := why_not():
        assert os.environ.get("PERFLAB_REQUIRE_DOCKER") != "1", why
        pytest.skip(why)
    program = project_root() / "benchmarks" / "many_cells.py"
    words = ["--cells", "5", "--workers", "2", "--sleeping", "1", "--kill", "1", "--minutes", "8"]
    done = subprocess.run([sys.executable, program, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 cells over 2 hosts" in done.stdout
    assert "1 workers killed" in done.stdout
    found = re.search(r"(\d+) measurements, at most (\d) at once", done.stdout)
    assert found is not None, done.stdout
    # Of a lost worker's cell there may be two: one that nobody could tell of any more.
    assert int(found[1]) in (5, 6)
    # How often both hosts measure at the same time is up to the machine; more than both cannot.
    assert int(found[2]) <= 2
