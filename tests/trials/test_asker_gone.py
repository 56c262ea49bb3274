"""A conductor whose asker is gone ends, also while it has nothing to say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from perflab.host.lock import measurement_lock
from perflab.paths import project_root, runs_dir
from perflab.systems import experiment
from perflab.trials.conductor import ASKER_GONE, Order

PATIENCE_S = 600.0


@pytest.mark.slow
def test_a_conductor_that_waits_for_the_host_ends_with_its_asker(tmp_path: Path) -> None:
    chosen = experiment("sync_vs_async")
    order = Order(plan=chosen.plan(chosen.check({})), runs=runs_dir(), wait_s=PATIENCE_S)
    said = tmp_path / "said"
    # A file takes what it says: it never learns from a broken pipe that nobody listens.
    with measurement_lock("another run"), said.open("wb") as out:
        conductor = subprocess.Popen(
            [sys.executable, "-m", "perflab.trials.conductor"],
            stdin=subprocess.PIPE, stdout=out, cwd=project_root(),
        )  # fmt: skip
        assert conductor.stdin is not None
        try:
            conductor.stdin.write(order.model_dump_json().encode() + b"\n")
            conductor.stdin.close()
            assert conductor.wait(timeout=60) == 1
        finally:
            conductor.kill()
            conductor.wait()
    last = json.loads(said.read_text().splitlines()[-1])
    assert (last["event"], ASKER_GONE in last["text"]) == ("error", True)
