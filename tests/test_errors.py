"""Errors for the user stand in a notebook without the frames of the lab."""

from __future__ import annotations

from pathlib import Path

import nbformat
import papermill
import pytest
from IPython.core.interactiveshell import InteractiveShell
from papermill.exceptions import PapermillExecutionError

from perflab.errors import ParameterError

WRONG = """import perflab
perflab.notebook_parameters("synchronous_commit", {"blocks": -1, "workers": 100})"""


def test_a_parameter_error_is_shown_in_a_notebook_without_a_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shell = InteractiveShell()
    outcome = shell.run_cell(WRONG)
    assert isinstance(outcome.error_in_exec, ParameterError)
    lines = capsys.readouterr().out.strip().splitlines()
    assert lines == [
        "ParameterError: experiment 'synchronous_commit': nothing was started, because of",
        "  - blocks = -1: input should be greater than or equal to 1",
        "  - workers = 100: input should be less than or equal to 64",
    ]


@pytest.mark.slow
def test_papermill_fails_with_the_error_and_names_it(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(WRONG)])
    notebook.metadata["kernelspec"] = {"name": "python3", "language": "python"}
    nbformat.write(notebook, tmp_path / "wrong.ipynb")
    with pytest.raises(PapermillExecutionError) as caught:
        papermill.execute_notebook(
            str(tmp_path / "wrong.ipynb"), str(tmp_path / "out.ipynb"), progress_bar=False
        )
    assert caught.value.ename == "ParameterError"
    assert "blocks = -1" in caught.value.evalue
    shown = nbformat.read(tmp_path / "out.ipynb", as_version=4).cells[-1].outputs[-1]
    assert len("\n".join(shown.traceback).splitlines()) == 3
