"""Real sweeps through papermill; a kill of any process loses, repeats and leaves nothing."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import time
from contextlib import suppress
from itertools import product
from pathlib import Path

import psutil
import pytest

from perflab.host.lock import holder
from perflab.recordings import Run, list_runs
from perflab.stacks import cleanup
from perflab.sweeps.folder import Journal
from tests.sweeps.swept import TO_BE_KILLED, Swept, read_until


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_sweep_goes_on_after_cells_that_failed_and_after_a_signal(tmp_path: Path) -> None:
    swept = Swept(tmp_path, [13, 14, 20, TO_BE_KILLED])
    child = swept.begun()
    output = read_until(child, "cell 4/4", "1/3")
    assert "cell failed: RuntimeError: planted" in output
    # Only what the machine did wrong is tried again.
    assert output.count("trying again") == 1
    family = psutil.Process(child.pid).children(recursive=True)
    child.send_signal(signal.SIGINT)
    output, _ = child.communicate(timeout=90)
    # All processes of the sweep had ended before it did.
    assert child.returncode == 130, output
    assert [process for process in family if process.is_running()] == []
    assert (holder(), cleanup.everything()) == (None, [])
    assert "--resume" in output
    assert "Traceback" not in output
    index = swept.cells()
    assert list(index["state"]) == ["failed", "failed", "done", "interrupted"]
    assert list(index["attempts"]) == [1, 2, 1, 1]
    assert list(index["kind"]) == ["RuntimeError", "DeadKernelError", "", "RunInterrupted"]
    ends = [attempt.ended for attempt in Journal(swept.folder).cell(index["cell"][1]).attempts]
    assert [end is not None and end.infrastructure for end in ends] == [True, True]
    (second, stopped) = list_runs(swept.runs)
    assert stopped.record.state == "interrupted"

    output = swept.done("--resume", code=3)
    index = swept.cells()
    assert list(index["state"]) == ["failed", "failed", "done", "done"]
    assert list(index["run_id"]) == ["", "", second.run_id, stopped.run_id]
    assert list(index["attempts"]) == [2, 4, 1, 2]
    assert len(list_runs(swept.runs)) == 2
    record = Run(stopped.path).record
    assert record.state == "finished"
    assert len(record.sessions) == 2
    assert len(Run(second.path).record.sessions) == 1
    failed = index.iloc[0]
    assert failed["kind"] == "RuntimeError"
    assert "planted" in Path(failed["log"]).read_text()
    assert "planted" in Path(failed["notebook"]).read_text()
    page = (swept.folder / "index.html").read_text()
    for executed in filter(None, index["notebook"]):
        assert f'href="{os.path.relpath(executed, swept.folder)}"' in page
    assert "2 failed, 2 done" in output


# The kinds of processes by a word of their commands; all others are helpers.
VICTIMS = {
    "sweep": "command",
    "ipykernel_launcher": "kernel",
    "perflab.trials.conductor": "conductor",
    "perflab.load.workers.worker": "load worker",
    "perflab.stacks.reaper": "reaper",
}
BLOCKS, RATES = 2, (50, 100)
SWEEP = f"""
retries: 2
parameters: {{backend: process, blocks: {BLOCKS}, client: [lean], rate: {list(RATES)}}}
cells:
  - notebook: client_overhead
    parameters: {{warmup_s: 0, duration_s: 0.5}}
    grid: {{body_bytes: [20]}}
"""
MOST_STARTS, WITHIN_S = 12, 30.0


def alive(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def family(child: subprocess.Popen[str]) -> dict[str, list[psutil.Process]]:
    """Return the processes of a sweep by kind."""
    processes: dict[str, list[psutil.Process]] = {}
    with suppress(psutil.NoSuchProcess):
        command = psutil.Process(child.pid)
        for process in [command, *command.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                words = process.cmdline()
                known = [kind for word, kind in VICTIMS.items() if word in words]
                processes.setdefault(known[0] if known else "helper", []).append(process)
    return processes


def killed(child: subprocess.Popen[str], victim: str, after_s: float) -> list[psutil.Process]:
    """Kill a process of a kind ``after_s`` after it exists; return all processes before that."""
    while victim not in family(child) and child.poll() is None:
        time.sleep(0.05)
    time.sleep(after_s)
    processes = family(child)
    for process in processes.get(victim, [])[:1]:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    return [process for kind in processes.values() for process in kind]


def committed(swept: Swept) -> dict[Path, str]:
    """Return the digests of all files of committed trials."""
    files = swept.runs.glob("*/trials/b*/*")
    return {file: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def continued(swept: Swept, code: int | None) -> subprocess.Popen[str]:
    """Continue the sweep as a user would, or start it where nothing had begun."""
    return swept.begun() if code is None or not swept.has_folder else swept.begun("--resume")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_sweep_whose_processes_are_killed_one_by_one_ends_as_its_file_asks(
    tmp_path: Path,
) -> None:
    swept, chance = Swept(tmp_path, []), random.Random(1)
    swept.file.write_text(SWEEP)
    victims, digests = list(VICTIMS.values()), dict[Path, str]()
    code, output, commands = None, "", list[int]()
    for _ in range(MOST_STARTS):
        child = continued(swept, code)
        commands.append(child.pid)
        while victims and child.poll() is None:
            victim = victims.pop()
            before = killed(child, victim, chance.uniform(0, 1.5))
            digests |= committed(swept)
            if victim == "command":
                child.wait(WITHIN_S)
                # Processes that lost their parent end by themselves.
                _, left = psutil.wait_procs(before, timeout=WITHIN_S)
                assert [process for process in left if alive(process)] == []
        output, _ = child.communicate(timeout=200)
        code = child.returncode
        if code == 0 and not victims:
            break
    assert (code, victims) == (0, []), output
    as_planned(swept)
    assert {file: committed(swept).get(file) for file in digests} == digests
    assert (cleanup.everything(), holder()) == ([], None)
    assert list(swept.temporary.iterdir()) == []
    # Nor is anything left of their kernels, such as sockets and keys.
    owners = [path.read_text() for path in Path("/tmp").glob("perflab-kernel-*/owner")]
    assert not [pid for pid in commands for owner in owners if f"/{pid}/" in owner]
    assert [path for place in (swept.runs, swept.folder) for path in place.rglob(".tmp-*")] == []


def as_planned(swept: Swept) -> None:
    """Compare a finished sweep with its file: one cell, done once, each of its trials once."""
    index = swept.cells()
    assert list(index["state"]) == ["done"]
    (cell,), (run_id,) = index["cell"], index["run_id"]
    outcomes = [attempt.outcome for attempt in Journal(swept.folder).cell(cell).attempts]
    assert outcomes.count("done") == 1
    # A run that no cell knows was killed before it measured anything.
    assert [run.run_id for run in list_runs(swept.runs) if len(run.trials())] == [run_id]
    run = Run(swept.runs / run_id)
    assert (run.record.state, run.problems) == ("finished", [])
    trials = run.trials()
    current = trials[~trials["superseded"].astype(bool)]
    places = sorted(zip(current["block"], current["position"], strict=True))
    assert places == list(product(range(BLOCKS), range(len(RATES))))
