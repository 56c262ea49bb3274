"""Reasons keep whose fault they tell of, also through a recording, and old runs do not say."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from perflab.errors import RecordingError
from perflab.recordings import Reason, Run, RunWriter, fault, reason_columns, side_of
from tests.synthetic import write_run


def test_a_reason_is_a_text_that_knows_its_side() -> None:
    reason = Reason("3 WebSockets ended", "server")
    assert "ended" in reason
    assert (side_of(reason), side_of("the machine slept")) == ("server", "unknown")


@pytest.mark.parametrize(
    ("sides", "whose"),
    [
        (["server", "server"], "server"),
        (["server", "client"], "client"),
        (["server", "unknown"], "unknown"),
        (["unknown", "client"], "client"),
        ([], "unknown"),
    ],
)
def test_the_server_is_blamed_only_where_nothing_else_can_be(sides: list[str], whose: str) -> None:
    assert fault(sides) == whose


def committed(root: Path, **row: object) -> Run:
    model = write_run(root / "model", blocks=1, requests=10)
    writer = RunWriter.create(root, model.record)
    treatment = model.record.treatments[0].name
    identity = {"trial_id": "b000-p00-a0", "block": 0, "position": 0, "attempt": 0}
    given = {**identity, "treatment": treatment, "state": "invalid", **row}
    writer.commit_trial(given, None, None)
    return Run(writer.path)


def test_sides_are_read_back_beside_their_reasons(tmp_path: Path) -> None:
    given = reason_columns([Reason("was late", "client"), "slept", Reason("lost", "server")])
    trial = committed(tmp_path, **given).trials().iloc[0]
    assert list(trial["reasons"]) == ["was late", "slept", "lost"]
    assert list(trial["reason_sides"]) == ["client", "unknown", "server"]


def test_sides_that_do_not_fit_their_reasons_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="1 reasons have 2 sides"):
        committed(tmp_path, reasons=["lost"], reason_sides=["server", "client"])


def test_a_run_from_before_sides_does_not_say_whose_faults_they_were(tmp_path: Path) -> None:
    run = committed(tmp_path, reasons=["lost", "late"])
    file = run.path / "trials" / "b000-p00-a0" / "trial.parquet"
    (file.parent / "manifest.json").unlink()  # nor were there manifests then
    pq.write_table(pq.read_table(file).drop_columns(["reason_sides"]), file)
    trial = Run(run.path).trials().iloc[0]
    assert list(trial["reason_sides"]) == ["unknown", "unknown"]
