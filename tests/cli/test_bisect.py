"""The statuses of a duel for ``git bisect run``."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from perflab import api
from perflab.analysis.evaluation import evaluate
from perflab.analysis.gates.thresholds import thresholds_of
from perflab.analysis.results import Gate
from perflab.cli import app
from perflab.cli.duel_status import LAB_FAILED, NOT_SLOWER, SKIPPED, SLOWER, bisected
from perflab.errors import HostBusy, ParameterError, PerflabError, ServiceFailed, WrongAnswer
from perflab.reports.duel_pairs import Pair, pairs_of
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
    ],
)
def test_a_commit_that_cannot_run_is_skipped_and_a_fault_of_the_lab_ends_the_bisection(
    error: PerflabError, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise error

    monkeypatch.setattr(api, "run", failing)
    done = CliRunner().invoke(app, ["duel", "--bisect", *VARIANTS])
    assert (done.exit_code, str(error) in done.stderr) == (status, True)


def test_a_wrong_option_ends_the_bisection_and_makes_no_commit_bad() -> None:
    done = CliRunner().invoke(app, ["duel", "--bisect", *VARIANTS, "--users", "0"])
    assert (done.exit_code, "users" in done.stderr) == (LAB_FAILED, True)
