"""A sweep whose processes are killed one by one, and what must be so afterwards."""

from __future__ import annotations

import hashlib
import random
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import psutil

from perflab.host.lock import holder
from perflab.instruments.py_spy import tool
from perflab.recordings import Run, list_runs
from perflab.stacks import cleanup
from perflab.stacks.service_processes import is_alive
from perflab.sweeps.folder import Journal
from tests.sweeps.swept import Swept

# The kinds of processes by a part of their commands; all others are helpers.
VICTIMS = {
    "sweep": "command",
    "ipykernel_launcher": "kernel",
    "perflab.trials.conductor": "conductor",
    "perflab.load.workers.worker": "load worker",
    "perflab.stacks.reaper": "reaper",
    "/services/": "service",
}
BLOCKS, RATES = 2, (50, 100)
SWEEP = f"""
retries: {{retries}}
parameters: {{{{backend: process, blocks: {BLOCKS}, client: [lean], rate: {list(RATES)}}}}}
cells:
  - notebook: client_overhead
    parameters: {{{{warmup_s: 0, duration_s: 0.5}}}}
    grid: {{{{body_bytes: [20]}}}}
"""
MOST_STARTS, WITHIN_S = 12, 30.0


@dataclass
class Kills:
    """What a sweep went through: who was killed, what was wrong, and what it came to."""

    victims: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    starts: int = 0
    attempts: int = 0
    files: int = 0
    longest_s: float = 0.0


def killed_one_by_one(
    swept: Swept, victims: Sequence[str], chance: random.Random, retries: int = 2
) -> Kills:
    """Carry a sweep of one cell out, kill a process of each kind meanwhile, and look after it."""
    swept.file.write_text(SWEEP.format(retries=retries))
    kills, left, digests = Kills(), list(victims), dict[Path, str]()
    code, output, commands = None, "", list[int]()
    while kills.starts < MOST_STARTS:
        kills.starts += 1
        child = _continued(swept, code)
        commands.append(child.pid)
        while left and child.poll() is None:
            victim = left.pop()
            before = _killed(child, victim, chance.uniform(0, 1.5))
            kills.victims.append(victim)
            digests |= _committed(swept)
            if victim == "command":
                child.wait(WITHIN_S)
                began = time.monotonic()
                # Processes that lost their parent end by themselves.
                _, others = psutil.wait_procs(before, timeout=WITHIN_S)
                kills.longest_s = max(kills.longest_s, time.monotonic() - began)
                kills.faults += [
                    f"goes on: {each}, {_threads(each)}" for each in others if is_alive(each)
                ]
        output, _ = child.communicate(timeout=200)
        code = child.returncode
        if code == 0 and not left:
            break
    if (code, left) != (0, []):
        kills.faults.append(f"ended with {code}, {left} not killed: {output}")
        return kills
    kills.faults += _faults(swept, commands, digests)
    kills.attempts = int(swept.cells()["attempts"].sum())
    kills.files = len(digests)
    return kills


def _threads(process: psutil.Process) -> str:
    """Return what a process is, and where each of its threads is."""
    with suppress(psutil.Error, OSError):
        chains = subprocess.run(
            [tool(), "dump", "--pid", str(process.pid)], capture_output=True, text=True
        )
        return f"{process.cmdline()} of parent {process.ppid()}: {chains.stdout}"
    return ""


def _family(child: subprocess.Popen[str]) -> dict[str, list[psutil.Process]]:
    """Return the processes of a sweep by kind."""
    processes: dict[str, list[psutil.Process]] = {}
    with suppress(psutil.NoSuchProcess):
        command = psutil.Process(child.pid)
        for process in [command, *command.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                words = process.cmdline()
                known = [
                    kind
                    for part, kind in VICTIMS.items()
                    if any(part in word if "/" in part else part == word for word in words)
                ]
                processes.setdefault(known[0] if known else "helper", []).append(process)
    return processes


def _killed(child: subprocess.Popen[str], victim: str, after_s: float) -> list[psutil.Process]:
    """Kill a process of a kind ``after_s`` after it exists; return all processes before that."""
    while victim not in _family(child) and child.poll() is None:
        time.sleep(0.05)
    time.sleep(after_s)
    processes = _family(child)
    for process in processes.get(victim, [])[:1]:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    return [process for kind in processes.values() for process in kind]


def _committed(swept: Swept) -> dict[Path, str]:
    """Return the digests of all files of committed trials."""
    files = swept.runs.glob("*/trials/b*/*")
    return {file: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def _continued(swept: Swept, code: int | None) -> subprocess.Popen[str]:
    """Continue the sweep as a user would, or start it where nothing had begun."""
    return swept.begun() if code is None or not swept.has_folder else swept.begun("--resume")


def _faults(swept: Swept, commands: Sequence[int], digests: dict[Path, str]) -> Iterator[str]:
    """Yield what was lost, repeated or left behind by a sweep that has ended."""
    now = _committed(swept)
    yield from (f"lost or changed: {file}" for file in digests if now.get(file) != digests[file])
    yield from (f"left behind: {each}" for each in cleanup.everything())
    if holder() is not None:
        yield f"the host is still held by {holder()}"
    yield from (f"left behind: {path}" for path in swept.temporary.iterdir())
    # Nor is anything left of their kernels, such as sockets and keys.
    owners = [path.read_text() for path in Path("/tmp").glob("perflab-kernel-*/owner")]
    yield from (
        f"left of kernel {pid}" for pid in commands for each in owners if f"/{pid}/" in each
    )
    for place in (swept.runs, swept.folder):
        yield from (f"unfinished: {path}" for path in place.rglob(".tmp-*"))
    yield from _not_as_planned(swept)


def _not_as_planned(swept: Swept) -> Iterator[str]:
    """Compare a finished sweep with its file: one cell, done once, each of its trials once."""
    index = swept.cells()
    if list(index["state"]) != ["done"]:
        yield f"cells: {list(index['state'])}"
        return
    (cell,), (run_id,) = index["cell"], index["run_id"]
    outcomes = [attempt.outcome for attempt in Journal(swept.folder).cell(cell).attempts]
    if outcomes.count("done") != 1:
        yield f"attempts: {outcomes}"
    # A run that no cell knows was killed before it measured anything.
    measured = [run.run_id for run in list_runs(swept.runs) if len(run.trials())]
    if measured != [run_id]:
        yield f"measured runs: {measured}, of the cell: {run_id}"
    run = Run(swept.runs / run_id)
    if (run.record.state, run.problems) != ("finished", []):
        yield f"{run.record.state}: {run.problems}"
    trials = run.trials()
    current = trials[~trials["superseded"].astype(bool)]
    places = sorted(zip(current["block"], current["position"], strict=True))
    if places != list(product(range(BLOCKS), range(len(RATES)))):
        yield f"trials: {places}"
