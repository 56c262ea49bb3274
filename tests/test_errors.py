"""Errors for the user stand in a notebook without the frames of the lab."""

from __future__ import annotations

import pytest
from IPython.core.interactiveshell import InteractiveShell

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
