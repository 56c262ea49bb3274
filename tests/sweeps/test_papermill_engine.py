"""papermill shows trials over a private kernel; notebooks that cannot begin fail as one cell."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import papermill  # noqa: F401  (loads the engine, as its users do)
import pytest
from tqdm import tqdm

from perflab.errors import NotebookFailed
from perflab.paths import notebook_file
from perflab.sweeps import attempt
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


def written(folder: Path, *cells: str) -> Path:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata = {"kernelspec": {"name": "python3", "language": "python",
                                        "display_name": "Python 3"}}  # fmt: skip
    nbformat.write(notebook, folder / "in.ipynb")
    return folder / "in.ipynb"


def executed(folder: Path, *cells: str, most_bytes: int = -1) -> subprocess.CompletedProcess[str]:
    """Let papermill execute cells as its users do, on a disk that takes no larger files."""
    written(folder, *cells)
    return subprocess.run(
        [str(Path(sys.executable).with_name("papermill")), "in.ipynb", "out.ipynb"],
        cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "COLUMNS": "100"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes)),
    )  # fmt: skip


@pytest.mark.slow
def test_a_full_disk_leaves_the_name_of_the_run(tmp_path: Path) -> None:
    measuring = f"{CELL}\nimport time; time.sleep(1)"
    done = executed(tmp_path, measuring, "print('x' * 50_000)", most_bytes=40_000)
    assert done.returncode != 0
    assert "-p resume 20260102-a; -p from_run 20260102-a shows it" in done.stderr


# As a desktop's session does, this process adopts orphans: process 1 is not their parent.
ADOPTED = """
import ctypes, subprocess, sys, psutil
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
with subprocess.Popen([sys.executable, "-m", "papermill", *sys.argv[1:]]) as papermill:
    kernels = []
    while not kernels and papermill.poll() is None:
        kernels = [child for child in psutil.Process(papermill.pid).children()
                   if any("ipykernel_launcher" in word for word in child.cmdline())]
    papermill.kill()
print(len(kernels), len(psutil.wait_procs(kernels, timeout=20)[1]))
[kernel.kill() for kernel in kernels if kernel.is_running()]
"""


@pytest.mark.slow
@pytest.mark.promise
def test_a_kernel_ends_with_a_papermill_that_is_killed_while_the_kernel_begins(
    tmp_path: Path,
) -> None:
    notebook = written(tmp_path, "import time; time.sleep(60)")
    words = [sys.executable, "-c", ADOPTED, notebook, tmp_path / "out.ipynb", "--no-progress-bar"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == "1 0\n"


@pytest.mark.slow
def test_a_failed_notebook_names_its_run_and_is_written_where_its_link_leads(
    tmp_path: Path,
) -> None:
    elsewhere = tmp_path / "elsewhere" / "kept.ipynb"
    elsewhere.parent.mkdir()
    elsewhere.touch()
    elsewhere.chmod(0o660)
    (tmp_path / "out.ipynb").symlink_to(elsewhere)
    done = executed(tmp_path, f"{CELL}\nimport time; time.sleep(1)", "1 / 0")
    assert done.returncode != 0
    written = json.loads(elsewhere.read_text())
    assert written["metadata"]["perflab"] == {"run": "20260102-a"}
    assert (tmp_path / "out.ipynb").is_symlink()
    assert elsewhere.stat().st_mode & 0o777 == 0o660


@pytest.mark.slow
def test_papermill_on_the_command_line_shows_trials_over_a_private_kernel(tmp_path: Path) -> None:
    done = executed(tmp_path, CELL)
    assert done.returncode == 0, done.stderr
    assert "  2/2 on: measured  (about 0:03 left)" in done.stderr
    # The kernel's own warning about plain TCP.
    assert "encryption" not in done.stderr
    cells = json.loads((tmp_path / "out.ipynb").read_text())["cells"]
    assert "".join(cells[0]["outputs"][0]["text"]).strip() == "ipc 0o700"


NAME = "serialization"
Damage = Callable[[Path], None]


@pytest.fixture
def damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Damage:
    """Return what puts a damaged copy in the notebook's place."""
    monkeypatch.setenv("PERFLAB_RUNS", str(tmp_path / "runs"))
    return lambda copy: monkeypatch.setattr(attempt, "notebook_file", lambda _: copy)


def changed(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    book = json.loads(notebook_file(NAME).read_text())
    change(book)
    path = folder / f"{NAME}.ipynb"
    path.write_text(json.dumps(book))
    return path


def kept_by_another_editor(book: dict[str, Any]) -> None:
    """Take identifiers, kernel and language, as old editors do, and the tag."""
    book["metadata"].clear()
    book["nbformat_minor"] = 4
    for cell in book["cells"]:
        cell["metadata"].pop("tags", None)
        cell.pop("id", None)


@pytest.mark.slow
def test_values_do_not_give_way_to_defaults_unnoticed(
    tmp_path: Path, damage: Damage, recwarn: pytest.WarningsRecorder
) -> None:
    damage(changed(tmp_path, kept_by_another_editor))
    with pytest.raises(NotebookFailed, match="blocks = 3 was given, but the notebook has 8"):
        attempt.execute(NAME, {"blocks": 3})
    assert [str(one.message) for one in recwarn if "MissingID" in one.category.__name__] == []


def test_what_is_no_notebook_is_a_failure_of_its_cell(tmp_path: Path, damage: Damage) -> None:
    broken = tmp_path / "broken.ipynb"
    broken.write_text('{"cells": [')
    damage(broken)
    with pytest.raises(NotebookFailed, match="does not appear to be JSON"):
        attempt.execute(NAME, {"blocks": 3})


def kernel(folder: Path, words: str) -> str:
    """Write what Jupyter knows of the kernel, and return the folder for JUPYTER_PATH."""
    spec = folder / "kernels" / "python3"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text(words)
    return str(folder)


def test_the_kernel_of_another_python_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = {"argv": ["/elsewhere/bin/python3", "-m", "ipykernel"], "display_name": "other"}
    described = json.dumps({**words, "language": "python"})
    monkeypatch.setenv("JUPYTER_PATH", kernel(tmp_path, described))
    with pytest.raises(NotebookFailed, match="runs /elsewhere/bin/python3, and the lab") as caught:
        attempt.execute(NAME, {"blocks": 3})
    assert sys.executable in str(caught.value)
    assert "JUPYTER_PATH" in str(caught.value)


def test_a_kernel_that_cannot_be_read_is_a_failure_of_its_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_PATH", kernel(tmp_path, '{"argv": ['))
    with pytest.raises(NotebookFailed, match="JSONDecodeError"):
        attempt.execute(NAME, {"blocks": 3})
