"""Instruments at a trial: in which order, ended whatever happens, and heard by their own words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

from perflab.errors import ExperimentError, LoadError, StackError
from perflab.instruments import STANDARD, Instrument, Load, Look, Observation, Scene
from perflab.recordings import Reason, Remark
from perflab.trials.trial import TrialTables, measure
from tests.trials.fakes import Residents, bench, treatment

NOTES: list[str] = []


class Noting(Instrument):
    """Notes what is asked of it; ``trouble`` names the step at which it fails."""

    tables: ClassVar = {"noted": {"number": "int64"}}

    name: str
    trouble: str = ""
    column: str = ""

    def look(self, scene: Scene) -> Look:
        return _Noting(self, scene)


class _Noting(Look):
    def __init__(self, settings: Noting, scene: Scene) -> None:
        self.settings, self.scene = settings, scene

    def step(self, name: str) -> None:
        NOTES.append(f"{name} {self.settings.name}")
        if self.settings.trouble == name:
            raise StackError(f"{self.settings.name} cannot {name}")

    def before(self) -> None:
        self.step("before")

    def begin(self) -> None:
        self.step("begin")

    def end(self) -> None:
        self.step("end")

    def after(self) -> None:
        self.step("after")

    def left(self) -> Mapping[str, pd.DataFrame]:
        return {"noted": pd.DataFrame({"number": [1]})}

    def observe(self, load: Load) -> Observation:
        self.step("observe")
        column = self.settings.column or f"{self.settings.name}_requests"
        reasons = [Reason(code="noting.refused", text="refused")] * (self.settings.name == "strict")
        return Observation(
            {column: len(load.result.requests)},
            {"noted": pd.DataFrame({"number": [2]})},
            reasons,
            [Remark(code="noting.told", text=f"{self.settings.name} was there")],
        )


def looked(
    folder: Path, *instruments: Instrument, residents: Residents | None = None, **load: Any
) -> TrialTables:
    NOTES.clear()
    own = treatment("a").model_copy(update={"instruments": (*STANDARD, *instruments)})
    return measure(bench(folder, residents, **load), own, {"trial_id": "t"})


def test_every_look_takes_its_steps_around_the_load(tmp_path: Path) -> None:
    found = looked(tmp_path, Noting(name="one"), Noting(name="two"))
    assert NOTES == [
        "before one", "before two", "begin one", "begin two", "end two", "end one", "after one",
        "after two", "observe one", "observe two",
    ]  # fmt: skip
    assert found.row["state"] == "valid"
    assert (found.row["one_requests"], found.row["two_requests"]) == (500, 500)
    assert found.others["noted"]["number"].tolist() == [2]
    told = [each.text for each in found.row["warnings"] if each.code == "noting.told"]
    assert told == ["one was there", "two was there"]


def test_a_reason_of_an_instrument_makes_the_trial_invalid(tmp_path: Path) -> None:
    found = looked(tmp_path, Noting(name="strict"))
    assert found.row["state"] == "invalid"
    assert [each.code for each in found.row["reasons"]] == ["noting.refused"]
    assert found.others["noted"]["number"].tolist() == [2]


def test_who_was_begun_is_ended_when_the_load_fails_and_its_failure_is_told(
    tmp_path: Path,
) -> None:
    found = looked(
        tmp_path, Noting(name="one", trouble="end"), fails=LoadError("a load worker died")
    )
    assert NOTES == ["before one", "begin one", "end one"]
    assert [each.text for each in found.row["reasons"]] == ["a load worker died"]
    assert found.others["noted"]["number"].tolist() == [1], "what was there is kept"


@pytest.mark.parametrize("column", ["state", "mean_ms", "cpu_share_echo"])
def test_no_instrument_writes_over_what_another_or_the_lab_measured(
    tmp_path: Path, column: str
) -> None:
    with pytest.raises(ExperimentError, match=f"measure {column}"):
        looked(tmp_path, Noting(name="one", column=column))


def test_without_instruments_a_trial_has_what_every_trial_has(tmp_path: Path) -> None:
    plain = treatment("a").model_copy(update={"instruments": ()})
    row = measure(bench(tmp_path), plain, {"trial_id": "t"}).row
    assert {"generator_lag_p99_ms", "cpu_share_echo", "paused_cpu_share", "steal_share"} <= set(row)
    assert not {"mean_ms", "throughput_rps", "cpu_probe_before_ms", "server_count"} & set(row)


def test_streams_change_no_word_of_what_a_treatment_asks_for(tmp_path: Path) -> None:
    # 200 requests with 4,000 deliveries and no acknowledgement: no instrument here asks for one.
    delivered_s = 0.4 + np.arange(4000) * 0.0005
    plain = looked(tmp_path / "plain", facts={})
    streamed = looked(tmp_path / "streamed", facts={"delivered_s": delivered_s})
    assert set(streamed.row) == set(plain.row)
    assert streamed.row["state"] == "valid"
    assert streamed.row["mean_ms"] == plain.row["mean_ms"]
    assert streamed.row["client_cpu_us_per_request"] > 0
    assert len(streamed.others["messages"]) == 4000
    assert set(streamed.others["messages"]["kind"]) == {"price"}
