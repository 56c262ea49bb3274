"""Reasons keep their code and whose fault they tell of, also through a recording and JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from perflab.errors import RecordingError, ResumeRefused
from perflab.recordings import Reason, Remark, Run, RunWriter, check_same, fault
from perflab.recordings.older import UNCODED
from tests.synthetic import write_run

LATE = Reason(code="generator.lag", side="client", text="was late")
SLEPT = Reason(code="host.clock_step", text="slept")
LOST = Reason(code="chat.lost", side="server", text="lost")


def test_a_reason_reads_as_its_text() -> None:
    assert str(LOST) == f"{LOST}" == "lost"
    assert "los" in LOST
    assert "late" not in LOST


@pytest.mark.parametrize(
    "code", ["", "lag", "Generator.lag", "generator.", "generator lag", "a..b"]
)
def test_a_code_is_a_slug_with_a_dot(code: str) -> None:
    with pytest.raises(ValidationError, match="code"):
        Reason(code=code, text="was late")


def test_a_reason_is_nobodys_or_one_of_two_sides() -> None:
    assert SLEPT.side == "unknown"
    with pytest.raises(ValidationError, match="side"):
        Reason.model_validate({"code": "generator.lag", "side": "nobody", "text": "was late"})


def test_a_reason_goes_through_json_unchanged() -> None:
    assert Reason.model_validate_json(LATE.model_dump_json()) == LATE


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
    given = {**identity, "treatment": treatment, "state": "invalid", **row}
    writer.commit_trial(given, None, None)
    return Run(writer.path)


def test_reasons_and_warnings_are_read_back_as_models(tmp_path: Path) -> None:
    seen = Remark(code="profiler.unseen", text="too short to be seen")
    run = committed(tmp_path, reasons=[LATE, SLEPT, LOST], warnings=[seen])
    trial = run.trials().iloc[0]
    assert trial["reasons"] == [LATE, SLEPT, LOST]
    assert trial["warnings"] == [seen]


def test_a_text_is_no_reason(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="reasons are models with code, side and text"):
        committed(tmp_path, reasons=["lost"])


def as_of_schema_1(run: Run, **columns: pa.Array) -> Run:
    """Return the run with its trial's columns as they were."""
    file = run.path / "trials" / "b000-p00-a0" / "trial.parquet"
    (file.parent / "manifest.json").unlink()  # the first had none
    table = pq.read_table(file).drop_columns(["reasons", "warnings"])
    for name, column in columns.items():
        table = table.append_column(name, column)
    pq.write_table(table, file)
    return Run(run.path)


def texts(*given: str) -> pa.Array:
    return pa.array([list(given)], type=pa.list_(pa.string()))


def test_reasons_of_schema_1_are_read_with_their_sides(tmp_path: Path) -> None:
    run = as_of_schema_1(
        committed(tmp_path),
        reasons=texts("lost", "late"),
        reason_sides=texts("server", "client"),
        warnings=texts("the load was ended early"),
    )
    trial = run.trials().iloc[0]
    assert trial["reasons"] == [
        Reason(code=UNCODED, side="server", text="lost"),
        Reason(code=UNCODED, side="client", text="late"),
    ]
    assert trial["warnings"] == [Remark(code=UNCODED, text="the load was ended early")]
    assert "reason_sides" not in trial


def test_a_run_from_before_sides_does_not_say_whose_faults_they_were(tmp_path: Path) -> None:
    run = as_of_schema_1(committed(tmp_path), reasons=texts("lost", "late"))
    trial = run.trials().iloc[0]
    assert [reason.side for reason in trial["reasons"]] == ["unknown", "unknown"]
    assert trial["warnings"] == []


@pytest.mark.parametrize("sides", [["server", "client"], ["nobody"]])
def test_sides_that_do_not_fit_their_reasons_are_damage(tmp_path: Path, sides: list[str]) -> None:
    run = as_of_schema_1(committed(tmp_path), reasons=texts("lost"), reason_sides=texts(*sides))
    assert run.trials().empty
    assert "b000-p00-a0 is damaged" in run.problems[0]


def test_a_run_of_schema_1_can_be_read_and_not_resumed(tmp_path: Path) -> None:
    record: Any = write_run(tmp_path, blocks=1, requests=10).record
    older = record.model_copy(update={"schema_version": 1})
    RunWriter(tmp_path / record.run_id, older).update(state="interrupted")
    again = Run(tmp_path / record.run_id).record
    assert again.schema_version == 1
    with pytest.raises(ResumeRefused, match=r"schema version 1, now 2.*new run"):
        check_same(again, record)
