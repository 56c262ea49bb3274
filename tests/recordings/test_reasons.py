"""Reasons keep their code and their side, also through a recording and JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab.errors import RecordingError
from perflab.recordings import Reason, Remark, Run, RunWriter, fault
from tests.support.synthetic import write_run

LATE = Reason(code="generator.late", side="client", text="was late")
SLEPT = Reason(code="host.clock_step", text="slept")
FAILED = Reason(code="server.failures", side="server", text="failed")
LOST = Reason(code="chat.lost", side="server", text="lost")


@pytest.mark.parametrize(
    ("reasons", "whose"),
    [
        ([LOST, LOST], "server"),
        ([LOST, LATE], "client"),
        ([LOST, SLEPT], "unknown"),
        ([SLEPT, LATE], "client"),
        ([], "unknown"),
    ],
)
def test_the_server_is_blamed_only_where_nothing_else_can_be(
    reasons: list[Reason], whose: str
) -> None:
    assert fault(reasons) == whose


def committed(root: Path, **row: object) -> Run:
    model = write_run(root / "model", blocks=1, requests=10)
    writer = RunWriter.create(root, model.record)
    treatment = model.record.treatments[0].name
    identity = {"trial_id": "b000-p00-a0", "block": 0, "position": 0, "attempt": 0}
    values = {**identity, "treatment": treatment, "state": "invalid", **row}
    writer.commit_trial(values, None, None)
    return Run(writer.path)


def test_reasons_and_warnings_are_read_back_as_models(tmp_path: Path) -> None:
    warning = Remark(code="profiler.unseen", text="too short to be seen")
    run = committed(tmp_path, reasons=[LATE, SLEPT, LOST], warnings=[warning])
    trial = run.trials().iloc[0]
    assert trial["reasons"] == [LATE, SLEPT, LOST]
    assert trial["warnings"] == [warning]


@pytest.mark.parametrize(
    ("reasons", "response", "enters"),
    [
        ([LATE], "service_cpu_us_per_request", True),
        ([LATE], "memory_service_bytes", True),
        ([LATE], "phase_database_p50_ms", True),
        ([LATE], "client_cpu_us_per_request", False),
        ([LATE], "mean_ms", False),
        ([LATE, SLEPT], "service_cpu_us_per_request", False),
        ([], "service_cpu_us_per_request", False),
        ([FAILED], "failure_share", True),
        ([FAILED, LATE], "failure_share", False),
    ],
)
def test_a_late_client_takes_nothing_from_what_the_service_counts(
    tmp_path: Path, reasons: list[Reason], response: str, enters: bool
) -> None:
    run = committed(tmp_path, reasons=reasons)
    assert len(run.trials_of(response)) == enters


def test_a_text_is_no_reason(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="reasons must be models with code, side and text"):
        committed(tmp_path, reasons=["lost"])
