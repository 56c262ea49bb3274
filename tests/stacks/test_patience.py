"""Slow work before a run ends when the user wants to end, and leaves nothing behind."""

from __future__ import annotations

import os
import time

import pytest

from perflab.errors import ImageError, RunInterrupted
from perflab.stacks.backend import Labels, never, patiently, run_command
from perflab.stacks.cleanup import of_service

ENVIRONMENT = {**os.environ, **Labels("patience", "it", "run").as_environment()}


def test_an_interrupted_command_is_ended_with_all_its_processes() -> None:
    began = time.monotonic()

    def interrupted() -> str:
        return "enough" if len(of_service("patience", "it")) == 3 else ""

    with pytest.raises(RunInterrupted, match="interrupted while it slept: enough"):
        run_command(["sh", "-c", "sleep 60 & sleep 60"], interrupted, "while it slept", ENVIRONMENT)
    assert time.monotonic() - began < 20, "it would sleep for a minute"
    assert of_service("patience", "it") == []


def test_an_interrupted_function_is_not_awaited_and_an_error_is_passed_on() -> None:
    began = time.monotonic()
    with pytest.raises(RunInterrupted, match="interrupted while it was built: enough"):
        patiently(lambda: time.sleep(30), lambda: "enough", "while it was built")
    assert time.monotonic() - began < 15, "it would sleep for half a minute"

    def fail() -> None:
        raise ImageError("no base")

    with pytest.raises(ImageError, match="no base"):
        patiently(fail, never, "")
    assert patiently(lambda: 7, never, "") == 7
