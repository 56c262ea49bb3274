"""Instruments in a trial: the order of their steps, their end in any case, and their errors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest

from perflab.errors import ExperimentError, LoadError, ServiceFailed, StackError
from perflab.host.meters import Meter, ProcessTable, Reading
from perflab.instruments import STANDARD, Instrument, Load, Observation, Scene, Sensor
from perflab.recordings import Reason, Remark
from perflab.trials.trial import TrialTables, measure
from tests.trials.fakes import Residents, bench, treatment

NOTES: list[str] = []
STEPS = ("sensor", "before", "begin", "meters", "end", "after", "observe")


class Endless(BaseException):
    """Stands for KeyboardInterrupt, which pytest keeps for itself."""


RAISED = {
    "own": ValueError("no such\n  price"), "end": Endless(), "lab": StackError("cannot"),
}  # fmt: skip


class Noting(Instrument):
    """Notes its steps; raises ``raises`` at the step ``trouble``."""

    tables: ClassVar = {"noted": {"number": "int64"}}

    name: str = "one"
    trouble: str = ""
    raises: str = "own"
    column: str = ""

    def sensor(self, scene: Scene) -> Sensor:  # noqa: ARG002
        self.step("sensor")
        return _Noting(self)

    def step(self, name: str) -> None:
        NOTES.append(f"{name} {self.name}")
        if self.trouble == name:
            raise RAISED[self.raises]


class _Noting(Sensor):
    def __init__(self, settings: Noting) -> None:
        self.settings, self.step = settings, settings.step

    def before(self) -> None:
        self.step("before")

    def begin(self) -> None:
        self.step("begin")

    def meters(self) -> Mapping[str, Meter]:
        self.step("meters")
        return {"own": self} if self.settings.trouble == "read" else {}

    def read(self, _table: ProcessTable) -> Reading | None:
        self.step("read")
        return None

    def end(self) -> None:
        self.step("end")

    def after(self) -> None:
        self.step("after")

    def left(self) -> Mapping[str, pd.DataFrame]:
        self.step("left")
        return {"noted": pd.DataFrame({"number": [1]})}

    def observe(self, load: Load) -> Observation:
        self.step("observe")
        name = self.settings.name
        return Observation(
            {self.settings.column or f"{name}_requests": len(load.result.requests)},
            {"noted": pd.DataFrame({"number": [2]})},
            [Reason(code="noting.refused", text="refused")] * (name == "strict"),
            [Remark(code="noting.told", text=f"{name} was there")],
        )


def sensed(
    folder: Path, *instruments: Instrument, residents: Residents | None = None, **load: Any
) -> TrialTables:
    NOTES.clear()
    watched = treatment("a").model_copy(update={"instruments": (*STANDARD, *instruments)})
    return measure(bench(folder, residents, **load), watched, {"trial_id": "t"})


def begun_and_ended() -> tuple[list[str], list[str]]:
    """Return the instruments that began, and those that ended in reverse; they should be equal."""
    begun, ended = (
        [note.partition(" ")[2] for note in NOTES if note.startswith(step)]
        for step in ("meters", "end")
    )
    return begun, ended[::-1]


def test_every_sensor_takes_its_steps_around_the_load(tmp_path: Path) -> None:
    trial = sensed(tmp_path, Noting(name="one"), Noting(name="two"))
    assert NOTES == [
        "sensor one", "sensor two", "before one", "before two", "begin one", "meters one",
        "begin two", "meters two", "end two", "end one", "after one", "after two", "observe one",
        "observe two",
    ]  # fmt: skip
    assert trial.row["state"] == "valid"
    assert (trial.row["one_requests"], trial.row["two_requests"]) == (500, 500)
    assert trial.others["noted"]["number"].tolist() == [2]
    texts = [item.text for item in trial.row["warnings"] if item.code == "noting.told"]
    assert texts == ["one was there", "two was there"]
    refused = sensed(tmp_path / "refused", Noting(name="strict"))
    assert refused.row["state"] == "invalid"
    assert [reason.code for reason in refused.row["reasons"]] == ["noting.refused"]


def test_sensors_that_began_end_when_the_load_fails_and_the_load_is_the_reason(
    tmp_path: Path,
) -> None:
    fails = LoadError("a load worker died")
    trial = sensed(tmp_path, Noting(trouble="end", raises="lab"), fails=fails)
    assert begun_and_ended() == (["one"], ["one"])
    assert [reason.text for reason in trial.row["reasons"]] == ["a load worker died"]
    assert trial.others["noted"]["number"].tolist() == [1], "what was there is kept"


@pytest.mark.parametrize("column", ["state", "mean_ms", "cpu_share_echo"])
def test_no_instrument_overwrites_a_column_of_another_or_of_the_lab(
    tmp_path: Path, column: str
) -> None:
    with pytest.raises(ExperimentError, match=f"measure {column}"):
        sensed(tmp_path, Noting(column=column))


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_raises_fails_the_trial_and_is_named_with_its_line(
    tmp_path: Path, step: str
) -> None:
    trial = sensed(tmp_path, Noting(), Noting(name="two", trouble=step), Noting(name="three"))
    assert trial.row["state"] == "failed"
    assert trial.services_whole
    (reason,) = trial.row["reasons"]
    assert (reason.code, reason.side) == ("instrument.error", "unknown")
    beginning = f"instrument Noting ({__name__}) raised in {step}: ValueError: no such price ("
    assert reason.text.startswith(beginning)
    assert "test_sensor_steps.py, line " in reason.text
    assert reason.text.endswith(": raise RAISED[self.raises])")
    begun, ended = begun_and_ended()
    assert ended == begun
    assert ("three" in ended) == (step in ("end", "after", "observe"))


def test_a_meter_that_raises_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such"):
        sensed(tmp_path, Noting(trouble="read"))


def test_a_service_that_died_meanwhile_is_the_first_reason(tmp_path: Path) -> None:
    class Dying(Residents):
        def lost(self, _name: str) -> Mapping[str, str]:
            self.dies = ServiceFailed("echo", "died", "last words")
            return {}

    trial = sensed(tmp_path, Noting(trouble="observe"), residents=Dying())
    assert [reason.code for reason in trial.row["reasons"]] == [
        "service.failed",
        "instrument.error",
    ]
    assert not trial.services_whole


@pytest.mark.parametrize("step", ["sensor", "begin", "observe"])
def test_no_instrument_holds_back_the_end_of_the_run(tmp_path: Path, step: str) -> None:
    with pytest.raises(Endless):
        sensed(tmp_path, Noting(), Noting(name="two", trouble=step, raises="end"))
    begun, ended = begun_and_ended()
    assert ended == begun
