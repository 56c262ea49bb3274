"""papermill's bar, and the kernel that it talks to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import papermill  # noqa: F401  (loads the engine, as its users do)
import pytest
from papermill.engines import papermill_engines
from tqdm import tqdm

from perflab.progress_bar import PROGRESS_FILE
from perflab.recordings.schema import TrialState
from perflab.trials.events import Event, Note, RunBegun, TrialBegun, TrialDone


def bar_after(*events: Event) -> tuple[SimpleNamespace, tqdm[None], str]:
    from perflab.papermill_engine import TrialsBar

    class Screen:
        text = ""

        def write(self, text: str) -> None:
            self.text += text

        def flush(self) -> None: ...

    screen = Screen()
    cells: tqdm[None] = tqdm(total=9, unit="cell", file=screen, ncols=100, mininterval=0)
    manager = SimpleNamespace(pbar=cells)
    bar = TrialsBar(manager)
    for event in events:
        bar(event)
    bar.close()
    return manager, cells, screen.text.rpartition("\r")[2].strip()


def trial(number: int, left_s: float | None = None) -> TrialBegun:
    return TrialBegun(
        number=number, of=12, block=1, blocks=6, treatment="commit=on", label="commit=on",
        left_s=left_s,
    )  # fmt: skip


def done(state: TrialState, left_s: float) -> TrialDone:
    return TrialDone(trial_id="b000-p00-a0", state=state, left_s=left_s)


def test_the_bar_counts_trials_from_the_first_one_on() -> None:
    begun = RunBegun(run_id="20260102-a", path="runs/20260102-a", backend="process")
    manager, _, text = bar_after(begun, trial(1), done("valid", 61.0))
    assert "commit=on: 1/12 trials" in text
    assert "about 1:01 left" in text
    # papermill goes on counting cells, but no longer with this bar.
    assert manager.pbar is None


def test_the_bar_says_how_many_trials_are_not_valid() -> None:
    _, _, text = bar_after(trial(1), done("invalid", 5.0), trial(2, 4.0), done("failed", 5.0))
    assert "2/12 trials" in text
    assert "2 not valid" in text


def test_a_notebook_without_a_run_keeps_its_bar_of_cells() -> None:
    manager, cells, text = bar_after(Note(text="nothing"))
    assert manager.pbar is cells
    assert "cell" in text


def test_papermill_takes_the_engine_without_being_asked() -> None:
    assert papermill_engines.get_engine(None).__name__ == "TrialsEngine"


CELL = f"""
import os
from ipykernel.kernelapp import IPKernelApp
from perflab.trials.events import TrialBegun, TrialDone
with open(os.environ["{PROGRESS_FILE}"], "a") as file:
    for number in (1, 2):
        trial = TrialBegun(number=number, of=2, block=1, blocks=1, treatment="on", label="on")
        done = TrialDone(trial_id="b000-p00-a0", state="valid", left_s=3.0)
        file.write(trial.model_dump_json() + "\\n" + done.model_dump_json() + "\\n")
app = IPKernelApp.instance()
folder = os.path.dirname(app.ip)
print(app.transport, oct(os.stat(folder).st_mode & 0o777))
"""


@pytest.mark.slow
def test_papermill_on_the_command_line_shows_trials_over_a_private_kernel(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    notebook.metadata = {"kernelspec": {"name": "python3", "language": "python",
                                        "display_name": "Python 3"}}  # fmt: skip
    nbformat.write(notebook, tmp_path / "in.ipynb")
    done = subprocess.run(
        [str(Path(sys.executable).with_name("papermill")), "in.ipynb", "out.ipynb"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
        env={**os.environ, "COLUMNS": "100"},
    )  # fmt: skip
    assert "on: 2/2 trials" in done.stderr
    # The kernel's own warning about plain TCP.
    assert "encryption" not in done.stderr
    cells = json.loads((tmp_path / "out.ipynb").read_text())["cells"]
    assert "".join(cells[0]["outputs"][0]["text"]).strip() == "ipc 0o700"
