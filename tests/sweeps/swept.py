"""Sweep files of the smallest service, and the command that is typed for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pandas as pd

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
        seconds = [3.0 if length >= TO_BE_KILLED else 0.3 for length in lengths]
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
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self._environment = {
            **os.environ,
            "TMPDIR": str(self.temporary),
            "PERFLAB_NOTEBOOKS": str(notebooks),
            "PERFLAB_RUNS": str(self.runs),
            "PERFLAB_FIGURES": str(folder / "figures"),
            "PERFLAB_SWEEPS": str(self._sweeps),
        }

    @property
    def environment(self) -> dict[str, str]:
        return dict(self._environment)

    def begun(self, *words: str) -> subprocess.Popen[str]:
        # Whoever started the tests in the background had them ignore what a user's terminal sends.
        heard = ["env", "--default-signal=HUP,INT,TERM"]
        return subprocess.Popen(
            [*heard, PERFLAB, "sweep", str(self.file), *words],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self._environment,
        )  # fmt: skip

    def done(self, *words: str, code: int) -> str:
        asked = self.begun(*words)
        told, _ = asked.communicate(timeout=280)
        assert asked.returncode == code, told
        return told

    @property
    def has_folder(self) -> bool:
        return self._sweeps.exists() and any(self._sweeps.glob("[!.]*"))

    @property
    def folder(self) -> Path:
        (found,) = self._sweeps.iterdir()
        return found

    def cells(self) -> pd.DataFrame:
        """Return a row per cell of the last session: its state, and how its last attempt ended."""
        journal, rows = Journal(self.folder), []
        for cell in journal.sessions[-1].cells:
            known = journal.cell(cell)
            ends = [each.ended for each in known.attempts if each.ended]
            own = {} if not ends or known.attempts[-1].ended is None else ends[-1].model_dump()
            own |= {"host": known.attempts[-1].begun.host} if known.attempts else {}
            counts = {"cell": cell, "state": known.state, "attempts": len(known.attempts)}
            rows.append({"kind": "", "log": "", **own, **counts, "run_id": known.run_id})
        return pd.DataFrame(rows)


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
