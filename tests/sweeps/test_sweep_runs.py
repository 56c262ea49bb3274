"""Sweeps carried out for real: through papermill, with the smallest service there is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import nbformat
import pandas as pd
import psutil
import pytest

from perflab.host.lock import holder
from perflab.recordings import Run, list_runs
from perflab.stacks import leftovers
from perflab.sweeps.journal import Journal

PERFLAB = str(Path(sys.executable).with_name("perflab"))
# As the notebook that is shipped, without tables and figures; two lengths of answers plant faults.
CELLS = (
    "import os\nif body_bytes == 13: raise RuntimeError('planted')\n"
    "if body_bytes == 14: os._exit(1)",
    "import perflab\nrun = perflab.run('client_overhead', "
    "perflab.notebook_parameters('client_overhead', globals()))\nperflab.verdict(run)",
)
TO_BE_KILLED = 30
SWEEP = """
retries: 1
parameters: {{backend: process, blocks: 3, fresh_blocks: 0, client: [lean], rate: [50]}}
cells:
  - notebook: client_overhead
    parameters: {{warmup_s: 0}}
    zip: {{body_bytes: {lengths}, duration_s: {seconds}}}
"""


class Swept:
    """A folder with a sweep file, and the command that is typed for it."""

    def __init__(self, folder: Path, lengths: list[int]) -> None:
        self.file = folder / "some.yaml"
        # A kernel looks once a second whether its parent is there: what is killed must last longer.
        seconds = [3.0 if length == TO_BE_KILLED else 0.3 for length in lengths]
        self.file.write_text(SWEEP.format(lengths=lengths, seconds=seconds))
        self.runs = folder / "runs"
        self._sweeps = folder / "sweeps"
        notebooks = folder / "notebooks"
        notebooks.mkdir()
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(source) for source in ("body_bytes = 1", *CELLS)],
            metadata={
                "kernelspec": {"name": "python3", "display_name": "Python 3"},
                "language_info": {"name": "python"},
            },
        )
        notebook.cells[0].metadata["tags"] = ["parameters"]
        nbformat.write(notebook, notebooks / "client_overhead.ipynb")
        self._environment = {
            **os.environ,
            "PERFLAB_NOTEBOOKS": str(notebooks),
            "PERFLAB_RUNS": str(self.runs),
            "PERFLAB_FIGURES": str(folder / "figures"),
            "PERFLAB_SWEEPS": str(self._sweeps),
        }

    def begun(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [PERFLAB, "sweep", str(self.file), *words],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self._environment,
        )  # fmt: skip

    def done(self, *words: str, code: int) -> str:
        asked = self.begun(*words)
        told, _ = asked.communicate(timeout=280)
        assert asked.returncode == code, told
        return told

    @property
    def folder(self) -> Path:
        (found,) = self._sweeps.iterdir()
        return found

    def index(self) -> pd.DataFrame:
        return pd.read_parquet(self.folder / "index.parquet")


def read_until(child: subprocess.Popen[str], *texts: str) -> str:
    """Read what a child says until each of the texts came, one after the other."""
    assert child.stdout is not None
    told = ""
    for text in texts:
        for line in child.stdout:
            told += line
            if text in line:
                break
        else:
            raise AssertionError(told)
    return told


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_sweep_goes_on_after_a_cell_that_raised_and_after_a_kill(tmp_path: Path) -> None:
    swept = Swept(tmp_path, [13, 20, TO_BE_KILLED])
    child = swept.begun()
    told = read_until(child, "cell 3/3", "1/3")
    assert "cell failed: RuntimeError: planted" in told
    family = psutil.Process(child.pid).children(recursive=True)
    assert family
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert child.stdout is not None
    child.stdout.close()
    _, alive = psutil.wait_procs(family, timeout=90)
    assert alive == []
    assert holder() is None
    assert leftovers.everything() == []
    # The index of what was done is whole, and says nothing of the cell that was killed.
    assert list(swept.index()["state"]) == ["failed", "done", "waiting"]
    (second, killed) = list_runs(swept.runs)

    told = swept.done("--resume", code=3)
    index = swept.index()
    assert list(index["state"]) == ["failed", "done", "done"]
    assert list(index["run_id"]) == ["", second.run_id, killed.run_id]
    assert list(index["attempts"]) == [1, 1, 2]
    assert len(list_runs(swept.runs)) == 2
    record = Run(killed.path).record
    assert record.state == "finished"
    assert len(record.sessions) == 2
    assert len(Run(second.path).record.sessions) == 1
    failed = index.iloc[0]
    assert failed["kind"] == "RuntimeError"
    assert "planted" in Path(failed["log"]).read_text()
    assert "planted" in Path(failed["executed"]).read_text()
    page = (swept.folder / "index.html").read_text()
    for executed in index["executed"]:
        assert f'href="{os.path.relpath(executed, swept.folder)}"' in page
    assert "1 failed, 2 done" in told


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_only_what_the_machine_did_wrong_is_tried_again_and_each_attempt_is_recorded(
    tmp_path: Path,
) -> None:
    swept = Swept(tmp_path, [14, 13])
    told = swept.done(code=3)
    assert "trying again (1 of 1)" in told
    index = swept.index()
    assert list(index["attempts"]) == [2, 1]
    assert list(index["kind"]) == ["DeadKernelError", "RuntimeError"]
    journal = Journal(swept.folder)
    ends = [attempt.ended for attempt in journal.cell(index["cell"][0]).attempts]
    assert [end is not None and end.infrastructure for end in ends] == [True, True]
