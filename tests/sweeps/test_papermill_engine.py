"""papermill shows the trials of a run, and talks to its kernel privately."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import papermill  # noqa: F401  (loads the engine, as its users do)
import pytest
from papermill.engines import papermill_engines
from tqdm import tqdm

from perflab.trials.progress import PROGRESS_FILE, Event, Note, RunBegun


def shown_after(*events: Event) -> SimpleNamespace:
    from perflab.sweeps.papermill_engine import trials_shown

    notebook = nbformat.v4.new_notebook()
    manager = SimpleNamespace(pbar=tqdm(total=9, unit="cell", mininterval=0), nb=notebook)
    show = trials_shown(manager)
    for event in events:
        show(event)
    return manager


def test_the_lines_of_a_run_stand_in_place_of_papermills_bar(
    capsys: pytest.CaptureFixture[str],
) -> None:
    begun = RunBegun(run_id="20260102-a", path="runs/20260102-a", backend="process")
    manager = shown_after(begun, Note(text="removed 2 services"))
    output = capsys.readouterr().err
    assert output.splitlines()[-2:] == [
        "run 20260102-a on the process backend", "  removed 2 services",
    ]  # fmt: skip
    # papermill goes on counting cells, but no longer with this bar; without a run it stays.
    assert manager.pbar is None
    assert shown_after().pbar is not None


def test_papermill_takes_the_engine_without_being_asked() -> None:
    assert papermill_engines.get_engine(None).__name__ == "TrialsEngine"


CELL = f"""
import os
from ipykernel.kernelapp import IPKernelApp
from perflab.trials.progress import RunBegun, TrialBegun, TrialDone
with open(os.environ["{PROGRESS_FILE}"], "a") as file:
    file.write(RunBegun(run_id="20260102-a", path="", backend="process").model_dump_json() + "\\n")
    for number in (1, 2):
        trial = TrialBegun(number=number, of=2, block=1, blocks=1, treatment="on", label="on")
        done = TrialDone(trial_id="b000-p00-a0", state="valid", left_s=3.0)
        file.write(trial.model_dump_json() + "\\n" + done.model_dump_json() + "\\n")
app = IPKernelApp.instance()
folder = os.path.dirname(app.ip)
print(app.transport, oct(os.stat(folder).st_mode & 0o777))
"""


def executed(folder: Path, *cells: str, most_bytes: int = -1) -> subprocess.CompletedProcess[str]:
    """Let papermill execute cells as its users do, on a disk that takes no larger files."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata = {"kernelspec": {"name": "python3", "language": "python",
                                        "display_name": "Python 3"}}  # fmt: skip
    nbformat.write(notebook, folder / "in.ipynb")
    return subprocess.run(
        [str(Path(sys.executable).with_name("papermill")), "in.ipynb", "out.ipynb"],
        cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "COLUMNS": "100"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes)),
    )  # fmt: skip


@pytest.mark.slow
def test_a_full_disk_leaves_a_whole_notebook_that_names_the_run(tmp_path: Path) -> None:
    measuring = f"{CELL}\nimport time; time.sleep(1)"
    done = executed(tmp_path, measuring, "print('x' * 50_000)", most_bytes=40_000)
    assert done.returncode != 0
    assert "-p resume 20260102-a; -p from_run 20260102-a shows it" in done.stderr
    written = json.loads((tmp_path / "out.ipynb").read_text())
    assert written["metadata"]["perflab"] == {"run": "20260102-a"}


@pytest.mark.slow
def test_papermill_on_the_command_line_shows_trials_over_a_private_kernel(tmp_path: Path) -> None:
    done = executed(tmp_path, CELL)
    assert done.returncode == 0, done.stderr
    assert "  2/2 on: measured  (about 0:03 left)" in done.stderr
    # The kernel's own warning about plain TCP.
    assert "encryption" not in done.stderr
    cells = json.loads((tmp_path / "out.ipynb").read_text())["cells"]
    assert "".join(cells[0]["outputs"][0]["text"]).strip() == "ipc 0o700"
