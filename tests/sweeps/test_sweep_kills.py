"""Real sweeps through papermill; a kill of a process loses, repeats and leaves nothing."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import psutil
import pytest

from perflab.host.lock import holder
from perflab.recordings import Run, list_runs
from perflab.stacks import cleanup
from perflab.sweeps.folder import Journal
from tests.sweeps.kills import killed_one_by_one
from tests.sweeps.swept import TO_BE_KILLED, Swept, read_until

# The others of a sweep are those of a run: tests/trials/test_runs.py kills them.
VICTIMS = ("command", "kernel", "conductor")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_sweep_goes_on_after_cells_that_failed_and_after_a_signal(tmp_path: Path) -> None:
    swept = Swept(tmp_path, [13, 14, 20, TO_BE_KILLED])
    child = swept.begun()
    output = read_until(child, "cell 4/4", "1/8")
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


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_sweep_whose_processes_are_killed_one_by_one_ends_as_its_file_asks(
    tmp_path: Path,
) -> None:
    kills = killed_one_by_one(Swept(tmp_path, []), VICTIMS, random.Random(1))
    assert kills.faults == []
    assert sorted(kills.victims) == sorted(VICTIMS)
