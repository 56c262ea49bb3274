"""The statuses of a duel for ``git bisect run``."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import pytest

from perflab import api
from perflab.analysis.evaluation import evaluate
from perflab.analysis.gates.thresholds import thresholds_of
from perflab.analysis.results import Gate
from perflab.cli.actions import duel_result
from perflab.cli.duel_status import LAB_FAILED, NOT_SLOWER, SKIPPED, SLOWER, bisected
from perflab.errors import (
    HostBusy,
    ParameterError,
    RunInterrupted,
    ServiceFailed,
    WrongAnswer,
)
from perflab.reports.duel_pairs import Pair, pairs_of
from tests.cli.conftest import Tell
from tests.golden.recordings import write_recording

VARIANTS = ("--variant", "old=command:cat {port}", "--variant", "new=command:cp {port}")


@pytest.mark.parametrize(
    ("story", "status"),
    [("claimed", SLOWER), ("against", NOT_SLOWER), ("unclear", SKIPPED), ("spoiled", SLOWER)],
)
def test_a_commit_is_bad_where_the_mean_certainly_rose_and_skipped_where_that_is_not_decided(
    story: str, status: int, tmp_path: Path
) -> None:
    findings = evaluate(write_recording(tmp_path, f"custom_service/{story}"))
    assert bisected(pairs_of(findings, (), ())) == status


@pytest.mark.parametrize(
    ("crossed", "status"),
    [
        ((Gate.PASSED,), NOT_SLOWER),
        ((Gate.FAILED, Gate.NOT_DECIDED), SLOWER),
        ((Gate.PASSED, Gate.NOT_DECIDED), SKIPPED),
        ((Gate.NOT_JUDGED,), SKIPPED),
    ],
)
def test_with_thresholds_these_decide(crossed: tuple[Gate, ...], status: int) -> None:
    thresholds = thresholds_of([f"p99>1.0{number}" for number in range(len(crossed))])
    pair = Pair("new", "old", {}, dict(zip(thresholds, crossed, strict=True)))
    assert bisected([pair]) == status


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ServiceFailed("new", "died while starting"), SKIPPED),
        (WrongAnswer("new answers 500"), SKIPPED),
        (HostBusy("another measurement runs"), LAB_FAILED),
        (ParameterError("perflab duel", ["no such option"]), LAB_FAILED),
        (ModuleNotFoundError("No module named 'yaml'", name="yaml"), LAB_FAILED),
        (OSError(errno.EMFILE, "Too many open files"), LAB_FAILED),
        (ZeroDivisionError("a fault of the lab"), LAB_FAILED),
        (RunInterrupted("three blocks are kept"), 130),
    ],
)
def test_a_commit_that_cannot_run_is_skipped_and_a_fault_of_the_lab_ends_the_bisection(
    error: Exception, status: int, perflab: Tell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise error

    monkeypatch.setattr(api, "run", failing)
    told = perflab(tmp_path, "duel", "--bisect", *VARIANTS, code=status)[1]
    assert str(error.args[-1]) in told or "yaml is not installed" in told


def test_a_measured_commit_has_the_status_of_its_duel(
    perflab: Tell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slower = write_recording(tmp_path, "custom_service/claimed")
    monkeypatch.setattr(api, "run", lambda *_: slower)
    monkeypatch.setattr(duel_result, "write_report", lambda *_: [tmp_path / "section.md"])
    assert "slower" in perflab(tmp_path, "duel", "--bisect", *VARIANTS, code=SLOWER)[0]


def test_an_answer_that_nobody_can_read_makes_no_commit_bad(
    perflab: Tell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unread(*_: object) -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(api, "run", unread)
    for stream in ("stdout", "stderr"):  # typer wraps them
        monkeypatch.setattr(sys, stream, getattr(sys, stream))
    perflab(tmp_path, "duel", "--bisect", *VARIANTS, code=LAB_FAILED)


@pytest.mark.parametrize("users", ["0", "four"])
def test_a_wrong_option_ends_the_bisection_and_makes_no_commit_bad(
    users: str, perflab: Tell, tmp_path: Path
) -> None:
    words = ("duel", "--bisect", *VARIANTS, "--users", users)
    assert "users" in perflab(tmp_path, *words, code=LAB_FAILED)[1]
