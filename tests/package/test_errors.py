"""Errors for the user stand in a notebook without the frames of the lab."""

from __future__ import annotations

import pickle

import pytest
from IPython.core.interactiveshell import InteractiveShell

from perflab.errors import NotebookFailed, ParameterError, PerflabError

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
        "  - blocks = -1: must be 1 or more",
        "  - workers = 100: must be 64 or less",
    ]


@pytest.mark.parametrize(
    "error", [ParameterError("a run", ["one", "two"]), NotebookFailed("it", "KeyError", "x", "log")]
)
def test_an_error_is_the_same_in_another_process(error: PerflabError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
