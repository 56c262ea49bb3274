"""What a cell of ``benchmarks/many_cells.py`` does: sleep under the host's lock, and note when.

The run is a recording like any other, with one trial of one request: from when to when was slept.
Instants of the host's clock (``..._ns``) prove what was measured when; those of the calendar
(``..._at``, seconds) say where a cell's time went.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from perflab.cluster.hosts import host_name
from perflab.host import facts
from perflab.host.lock import measurement_lock
from perflab.paths import lock_path, runs_dir
from perflab.progress import showing
from perflab.recordings import Run, RunRecord, RunWriter, TreatmentRecord, new_run_id, trial_id
from perflab.recordings.columns import REQUESTS, SAMPLES
from perflab.trials.events import Finished, RunBegun

# How many seconds longer a host sleeps in its first cell.
LONGER = "PERFLAB_SLEEPS_LONGER"
EXPERIMENT, TREATMENT = "client_overhead", "asleep"


def sleep_and_record(seconds: float, number: int, resume: str | None, wait_s: float) -> Run:
    """Sleep for so many seconds as a measurement does; return its run."""
    imported_at, is_first = time.time(), not any(runs_dir().glob("[!.]*"))
    seconds += float(os.environ.get(LONGER, "0")) if is_first else 0.0
    with showing() as show, measurement_lock("sleeping", wait_s):
        writer = _writer(number, resume)
        run_id, path = writer.record.run_id, str(writer.path)
        show(RunBegun(run_id=run_id, path=path, backend="process", resumed=bool(resume)))
        if not len(Run(writer.path).trials()):
            began_at, began_ns = time.time(), time.monotonic_ns()
            time.sleep(seconds)
            ended_ns, ended_at = time.monotonic_ns(), time.time()
            notes = {"imported_at": imported_at, "began_at": began_at, "ended_at": ended_at}
            writer.update(notes={**_notes(), **notes})
            _commit(writer, began_ns, ended_ns)
        writer.update(state="finished", finished_at=facts.session()["at"])
        show(Finished())
    return Run(writer.path)


def _notes() -> dict[str, Any]:
    return {"host": host_name(), "lock": str(lock_path()), "kernel_at": _process_began_at()}


def _process_began_at() -> float:
    """Return when this process was started, to 10 ms; psutil's boot time is in whole seconds."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    since_boot_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - since_boot_s)


def _writer(number: int, resume: str | None) -> RunWriter:
    if resume:
        return RunWriter.reopen(runs_dir() / resume)
    session = facts.session()
    return RunWriter.create(
        runs_dir(),
        RunRecord(
            run_id=new_run_id(EXPERIMENT),
            experiment=EXPERIMENT,
            system="lab",
            title="A cell that sleeps",
            question="What does a cell cost beyond its measurement?",
            created_at=session["at"],
            parameters={"body_bytes": number},
            treatments=[TreatmentRecord(name=TREATMENT, levels={})],
            blocks=1,
            seed=0,
            order=[[TREATMENT]],
            backend="process",
            network_path="none",
            sessions=[session],
            notes={"pid": os.getpid()},
        ),
    )


def _commit(writer: RunWriter, began_ns: int, ended_ns: int) -> None:
    name = trial_id(0, 0, 0)
    row = {"trial_id": name, "block": 0, "position": 0, "attempt": 0, "state": "valid"}
    began = dict.fromkeys(("planned_ns", "started_ns", "sent_ns"), began_ns)
    ended = dict.fromkeys(("first_byte_ns", "done_ns"), ended_ns)
    slept = {"stage": "measure", "worker": 0, "user": 0, **began, **ended, "connect_ns": 0}
    request = {**slept, "status": 200, "bytes": 0, "error": ""}
    requests = pa.Table.from_pylist([request], schema=REQUESTS)
    writer.commit_trial({**row, "treatment": TREATMENT}, requests, SAMPLES.empty_table())
