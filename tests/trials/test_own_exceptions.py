"""An instrument that raises an exception of its own fails its trial, and the run goes on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from perflab.errors import (
    LoadError,
    ServiceFailed,
    WrongAnswer,
)
from perflab.instruments import STANDARD, Instrument, Load, Look, Observation, Scene
from perflab.recordings import Run, RunWriter
from perflab.sampling.meters import Meter, ProcessTable, Reading
from perflab.trials.events import Event
from perflab.trials.session import Remaining, Session
from perflab.trials.trial import TrialTables, measure
from tests.trials.fakes import Residents, bench, plan, record, treatment

NOTES: list[str] = []
STEPS = ("look", "before", "begin", "meters", "end", "after", "observe")


class Endless(BaseException):
    """Stands for KeyboardInterrupt, which pytest keeps for itself."""


RAISED = {
    "own": ValueError("no such\n  price"), "end": Endless(), "wrong": WrongAnswer("b says no"),
}  # fmt: skip


class Foreign(Instrument):
    """Raises ``raises`` at the step ``trouble``, in the trials of the treatments ``only``."""

    name: str = "one"
    trouble: str = ""
    raises: str = "own"
    only: str = "ab"

    def look(self, scene: Scene) -> Look:
        self.step("look", scene)
        return _Foreign(self, scene)

    def step(self, name: str, scene: Scene) -> None:
        NOTES.append(f"{name} {self.name}")
        if self.trouble == name and scene.treatment in self.only:
            raise RAISED[self.raises]


class _Foreign(Look):
    def __init__(self, settings: Foreign, scene: Scene) -> None:
        self.settings, self.scene = settings, scene

    def before(self) -> None:
        self.settings.step("before", self.scene)

    def begin(self) -> None:
        self.settings.step("begin", self.scene)

    def meters(self) -> Mapping[str, Meter]:
        self.settings.step("meters", self.scene)
        return {"own": self} if self.settings.trouble == "read" else {}

    def read(self, _table: ProcessTable) -> Reading | None:
        self.settings.step("read", self.scene)
        return None

    def end(self) -> None:
        self.settings.step("end", self.scene)

    def after(self) -> None:
        self.settings.step("after", self.scene)

    def left(self) -> Mapping[str, pd.DataFrame]:
        self.settings.step("left", self.scene)
        name = self.settings.name
        return {name: pd.DataFrame({"number": [1]})} if name else {}

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        self.settings.step("observe", self.scene)
        if self.settings.trouble == "nothing":
            return None  # type: ignore[return-value]
        return Observation()


def looked(
    folder: Path, *instruments: Instrument, residents: Residents | None = None, **load: Any
) -> TrialTables:
    NOTES.clear()
    own = treatment("a").model_copy(update={"instruments": (*STANDARD, *instruments)})
    return measure(bench(folder, residents, **load), own, {"trial_id": "t"})


def begun_and_ended() -> tuple[list[str], list[str]]:
    """Return who was begun and who was ended; the last to begin ends first."""
    begun, ended = (
        [note.partition(" ")[2] for note in NOTES if note.startswith(step)]
        for step in ("meters", "end")
    )
    return begun, ended[::-1]


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_raises_fails_the_trial_and_is_told_with_its_line(
    tmp_path: Path, step: str
) -> None:
    found = looked(tmp_path, Foreign(), Foreign(name="two", trouble=step), Foreign(name="three"))
    assert found.row["state"] == "failed"
    assert found.services_whole
    (reason,) = found.row["reasons"]
    assert (reason.code, reason.side) == ("instrument.error", "unknown")
    told = f"instrument Foreign ({__name__}) raised in {step}: ValueError: no such price ("
    assert reason.text.startswith(told)
    assert "test_own_exceptions.py, line " in reason.text
    assert reason.text.endswith(": raise RAISED[self.raises])")
    begun, ended = begun_and_ended()
    assert ended == begun
    assert ("three" in ended) == (step in ("end", "after", "observe"))


def test_what_an_instrument_cannot_leave_is_one_more_reason(tmp_path: Path) -> None:
    found = looked(
        tmp_path, Foreign(trouble="left"), Foreign(name="two"), fails=LoadError("a worker died")
    )
    assert [each.code for each in found.row["reasons"]] == ["load.failed", "instrument.error"]
    assert {"one", "two"} & set(found.others) == {"two"}


def test_a_meter_that_raises_ends_nobody_elses_samples(tmp_path: Path) -> None:
    found = looked(tmp_path, Foreign(trouble="read"), takes_s=0.3)
    (reason,) = found.row["reasons"]
    assert "raised in meters: ValueError: no such price" in reason.text
    assert NOTES.count("read one") == 1, "it is read no more"
    assert found.samples is not None
    assert (found.samples["service"] == "echo").sum() > 3
    assert begun_and_ended() == (["one"], ["one"])


def test_a_service_that_died_meanwhile_is_told_first(tmp_path: Path) -> None:
    residents = Residents()
    residents.lost = lambda _name: (
        setattr(  # type: ignore[method-assign]
            residents, "dies", ServiceFailed("echo", "died", "last words")
        )
        or {}
    )
    found = looked(tmp_path, Foreign(trouble="observe"), residents=residents)
    assert [each.code for each in found.row["reasons"]] == ["service.failed", "instrument.error"]
    assert not found.services_whole


@pytest.mark.parametrize("step", STEPS)
def test_the_end_of_the_run_is_never_held_back(tmp_path: Path, step: str) -> None:
    with pytest.raises(Endless):
        looked(tmp_path, Foreign(), Foreign(name="two", trouble=step, raises="end"))
    begun, ended = begun_and_ended()
    assert ended == begun


def test_the_run_goes_on_with_the_services_it_has(tmp_path: Path) -> None:
    own = plan(blocks=6)
    failing = Foreign(name="", trouble="observe", only="a")
    own = own.model_copy(
        update={
            "treatments": tuple(
                each.model_copy(update={"instruments": (*each.instruments, failing)})
                for each in own.treatments
            )
        }
    )
    writer = RunWriter.create(tmp_path / "runs", record(own))
    residents = Residents()
    events: list[Event] = []
    made = bench(tmp_path / "raw", residents, takes_s=0.0)
    Session(own, writer, made, events.append).run(Remaining(tuple(range(6))))
    trials = Run(writer.path).trials()
    states = trials.groupby("treatment")["state"].agg(list)
    assert states.to_dict() == {"a": ["failed"] * 6, "b": ["valid"] * 6}
    assert {each.code for reasons in trials["reasons"] for each in reasons} == {"instrument.error"}
    assert "start" not in residents.notes


def test_a_wrong_answer_ends_the_run_and_nothing_is_started_afresh(tmp_path: Path) -> None:
    failing = Foreign(trouble="before", raises="wrong", only="b")
    own = plan(blocks=3)
    own = own.model_copy(
        update={
            "treatments": tuple(
                each.model_copy(update={"instruments": (failing, *each.instruments)})
                for each in own.treatments
            )
        }
    )
    writer = RunWriter.create(tmp_path / "runs", record(own))
    residents = Residents()
    made = bench(tmp_path / "raw", residents, takes_s=0.0)
    with pytest.raises(WrongAnswer, match="b says no"):
        Session(own, writer, made, lambda _: None).run(Remaining((0, 1, 2)))
    first = own.order()[0].index("b")
    assert len(Run(writer.path).trials()) == first, "what was measured before it is kept"
    assert "start" not in residents.notes
