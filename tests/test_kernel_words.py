"""A kernel's own output, past its notebook: not in the terminal, but in the log of a failure."""

from __future__ import annotations

from pathlib import Path

import nbformat
import papermill
import pytest

from perflab.errors import NotebookFailed
from perflab.papermill_job import execute

# What the lab's engine does, and papermill's users without a bar get.
QUIETLY = {"progress_bar": False, "kernel_name": "python3"}
TO_THE_TERMINAL = "import os, sys\nos.write(sys.__stderr__.fileno(), b'of its own')"


def notebook(folder: Path, source: str) -> str:
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    nbformat.write(made, folder / "one.ipynb")
    return str(folder / "one.ipynb")


def test_a_kernel_says_nothing_past_its_notebook(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    papermill.execute_notebook(notebook(tmp_path, TO_THE_TERMINAL), None, **QUIETLY)
    out, err = capfd.readouterr()
    assert "of its own" not in out + err


def test_what_kept_a_kernel_from_starting_is_in_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    with pytest.raises(NotebookFailed, match="DeadKernelError") as caught:
        execute("client_overhead", {"from_run": "latest"})
    assert "No module named 'encodings'" in caught.value.log
