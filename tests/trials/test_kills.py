"""Any process of a run may be killed: no service is left, no trial is lost, and it is named."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import psutil
import pytest

from perflab.host.lock import holder, measurement_lock
from perflab.paths import project_root
from perflab.recordings import Run
from perflab.stacks import cleanup
from perflab.trials.client import conduct
from perflab.trials.progress import Event, LoadProgress, Note, TrialBegun
from tests.stacks.asking import children_running
from tests.trials.test_runs import order_of

WITHIN_S = 15.0


def first_process(service: str) -> psutil.Process:
    (running,) = [item for item in cleanup.everything() if item.service == service]
    return psutil.Process(int(running.identity))


def inference_workers() -> list[psutil.Process]:
    children = first_process("inference").children()
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


def reapers() -> list[psutil.Process]:
    (conductor,) = children_running("perflab.trials.conductor", os.getpid())
    return children_running("perflab.stacks.reaper", conductor.pid)


# One of these processes is killed during the load of each trial.
VICTIMS: list[tuple[str, Callable[[], psutil.Process]]] = [
    ("a worker of the service", lambda: inference_workers()[0]),
    ("the service's master", lambda: first_process("inference")),
    ("the load worker", lambda: first_process("client")),
    ("a reaper", lambda: reapers()[0]),
]


@pytest.mark.slow
def test_a_killed_process_is_named_and_the_run_goes_on_with_whole_services() -> None:
    killed: list[psutil.Process] = []
    orphans: list[psutil.Process] = []
    notes: list[str] = []
    trial = 0

    def show(event: Event) -> None:
        nonlocal trial
        if isinstance(event, Note):
            notes.append(event.text)
        if isinstance(event, TrialBegun):
            trial = event.number
            # Services were started afresh: no process of the old ones runs any more.
            assert not [orphan for orphan in orphans if orphan.is_running()]
        if isinstance(event, LoadProgress) and len(killed) < trial:
            victim = VICTIMS[len(killed)][1]()
            orphans.extend([victim, *victim.children(recursive=True)])
            killed.append(victim)
            victim.kill()

    run = Run(conduct(order_of(requests=1200, workers=2), show))
    worker, master, loader, _ = (victim.pid for victim in killed)
    replaced, failed, unsent, clean = run.trials().to_dict("records")
    assert replaced["state"] == "invalid"
    assert replaced["reasons"][0].text.startswith(f"service 'inference' lost process {worker} (")
    assert failed["state"] == "failed"
    assert "service 'inference': was ended by SIGKILL" in failed["reasons"][0]
    assert f"pid {master}" not in str(notes)
    assert unsent["state"] == "failed"
    assert f"load worker died (pid {loader}): it was ended by SIGKILL" in unsent["reasons"][0]
    assert clean["state"] in ("valid", "invalid")
    assert "lost process" not in str(clean["reasons"])
    assert run.record.state == "finished"
    assert cleanup.everything() == []
    assert holder() is None


@pytest.mark.slow
def test_a_conductor_that_waits_for_the_host_ends_with_the_program_that_asked() -> None:
    order = order_of().model_copy(update={"wait_s": 20.0})
    with measurement_lock("another run"):
        conductor = subprocess.Popen(
            [sys.executable, "-m", "perflab.trials.conductor"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=project_root(),
        )  # fmt: skip
        assert conductor.stdin is not None
        assert conductor.stdout is not None
        conductor.stdin.write(order.model_dump_json().encode() + b"\n")
        conductor.stdin.flush()
        assert any(b"another run" in line for line in conductor.stdout)
        conductor.stdin.close()
        printed = conductor.stdout.read()
        conductor.stdout.close()
        assert conductor.wait(timeout=WITHIN_S) == 1
    assert b"the program that asked for it is gone" in printed
