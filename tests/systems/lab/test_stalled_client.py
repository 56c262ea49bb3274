"""The fault that lab_check plants: a client that is stopped and always runs again."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perflab.systems.lab.experiments.lab_check import EXPERIMENT, StalledClient


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_the_client_is_stopped_repeatedly_and_left_running() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        scene: Any = SimpleNamespace(client_pids=(child.pid,))
        look = StalledClient(stall_ms=20, pause_ms=20).look(scene)
        load: Any = None
        look.begin()
        states = []
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            states.append(state(child.pid))
            if look.observe(load).columns["planted_stalls"] >= 3:
                break
            time.sleep(0.002)
        look.end()
        assert "T" in states
        assert set(states) - {"T"}
        assert state(child.pid) != "T"
    finally:
        child.kill()
        child.wait()


def test_every_length_is_planted_in_a_closed_and_in_an_open_loop() -> None:
    parameters = EXPERIMENT.parameters.model_validate({"stalls_ms": [20, 150]})
    faults = {
        treatment.label: instrument
        for treatment in EXPERIMENT.treatments(parameters)
        for instrument in treatment.instruments
        if isinstance(instrument, StalledClient)
    }
    assert list(faults) == [
        "stalled: closed loop, 20 ms", "stalled: open loop, 20 ms",
        "stalled: closed loop, 150 ms", "stalled: open loop, 150 ms",
    ]  # fmt: skip
    shares = [fault.stall_ms / (fault.stall_ms + fault.pause_ms) for fault in faults.values()]
    assert shares == pytest.approx([0.2] * 4)
