"""Sweep files with the smallest service, and the command that carries them out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pandas as pd

from perflab.sweeps.folder import Journal

PERFLAB = str(Path(sys.executable).with_name("perflab"))
# The cells of the lab's notebook without tables and figures; two lengths of answers plant faults.
CELLS = (
    "import os\nif body_bytes == 13: raise RuntimeError('planted')\n"
    "if body_bytes == 14: os._exit(1)",
    "import perflab\nrun = perflab.run('client_overhead', "
    "perflab.notebook_parameters('client_overhead', globals()))\nperflab.answers(run)",
)
TO_BE_KILLED = 30
# Of eight trials some count on any machine: a cell without one would have failed.
SWEEP = """
retries: 1
parameters: {{backend: process, blocks: 8, fresh_blocks: 0, client: [lean], rate: [50]}}
cells:
  - notebook: client_overhead
    parameters: {{warmup_s: 0}}
    zip: {{body_bytes: {lengths}, duration_s: {seconds}}}
"""


class Swept:
    """A folder with a sweep file, and the command that carries it out."""

    def __init__(self, folder: Path, lengths: list[int]) -> None:
        self.file = folder / "some.yaml"
        # A kernel checks once a second that its parent lives, so a cell to be killed lasts longer.
        seconds = [0.5 if length >= TO_BE_KILLED else 0.3 for length in lengths]
        self.file.write_text(SWEEP.format(lengths=lengths, seconds=seconds))
        self.runs = folder / "runs"
        self._sweeps = folder / "sweeps"
        notebooks = folder / "notebooks"
        notebooks.mkdir()
        kernel = {"name": "python3", "display_name": "Python 3"}
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(source) for source in ("body_bytes = 1", *CELLS)],
            metadata={"kernelspec": kernel, "language_info": {"name": "python"}},
        )
        notebook.cells[0].metadata["tags"] = ["parameters"]
        nbformat.write(notebook, notebooks / "client_overhead.ipynb")
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.environment = {
            **os.environ,
            "TMPDIR": str(self.temporary),
            "PERFLAB_NOTEBOOKS": str(notebooks),
            "PERFLAB_RUNS": str(self.runs),
            "PERFLAB_FIGURES": str(folder / "figures"),
            "PERFLAB_SWEEPS": str(self._sweeps),
        }

    def begun(self, *words: str) -> subprocess.Popen[str]:
        # Tests that run in the background ignore the signals that a user's terminal sends.
        with_signals = ["env", "--default-signal=HUP,INT,TERM"]
        return subprocess.Popen(
            [*with_signals, PERFLAB, "sweep", str(self.file), *words],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.environment,
        )  # fmt: skip

    def done(self, *words: str, code: int) -> str:
        child = self.begun(*words)
        output, _ = child.communicate(timeout=280)
        assert child.returncode == code, output
        return output

    @property
    def has_folder(self) -> bool:
        return self._sweeps.exists() and any(self._sweeps.glob("[!.]*"))

    @property
    def folder(self) -> Path:
        (folder,) = self._sweeps.iterdir()
        return folder

    def cells(self) -> pd.DataFrame:
        """Return a row per cell of the last session: its state, and how its last attempt ended."""
        journal, rows = Journal(self.folder), []
        for cell in journal.sessions[-1].cells:
            state = journal.cell(cell)
            ends = [attempt.ended for attempt in state.attempts if attempt.ended]
            end = {} if not ends or state.attempts[-1].ended is None else ends[-1].model_dump()
            end |= {"host": state.attempts[-1].begun.host} if state.attempts else {}
            counts = {"cell": cell, "state": state.state, "attempts": len(state.attempts)}
            rows.append({"kind": "", "log": "", **end, **counts, "run_id": state.run_id})
        return pd.DataFrame(rows)


def read_until(child: subprocess.Popen[str], *texts: str) -> str:
    """Read the output of a child until it has all texts, in this order."""
    assert child.stdout is not None
    output = ""
    for text in texts:
        for line in child.stdout:
            output += line
            if text in line:
                break
        else:
            raise AssertionError(output)
    return output
