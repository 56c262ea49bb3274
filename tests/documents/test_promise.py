"""What `docs/reference/promise.md` promises of 0.1 is so."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import perflab
from perflab import systems
from perflab.cli import duel_status, export, sweep
from perflab.cli.actions import compare
from perflab.cli.load_status import Status
from perflab.paths import project_root
from perflab.recordings import Run

PAGE = (project_root() / "docs" / "reference" / "promise.md").read_text()
DATA = Path(__file__).parents[1] / "data"
RECORDING = DATA / "recording_0_1"
STATUSES = {
    "perflab compare": {compare.WORSE, compare.NOT_COMPARABLE, compare.TOO_FEW_RUNS},
    "perflab duel": {
        duel_status.WORSE, duel_status.NOT_JUDGED, duel_status.UNDECIDED,
        duel_status.NOT_SLOWER, duel_status.SLOWER, duel_status.SKIPPED, duel_status.LAB_FAILED,
    },
    "perflab export --verify": {export.STALE},
    "perflab load": {Status.INVALID, Status.ALL_FAILED, Status.MISSED},
    "perflab sweep": {sweep.SOME_FAILED, sweep.TIME_WAS_UP},
}  # fmt: skip


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_the_public_names_are_those_of_the_page() -> None:
    assert re.findall(r"`(\w+)`", section("Python")) == perflab.__all__
    assert all(callable(getattr(perflab, name)) for name in perflab.__all__)


def test_commands_end_with_the_statuses_of_the_page() -> None:
    rows = re.findall(r"^\| `(.*?)` \| (.*) \|$", section("Commands"), re.M)
    told = {command: set(map(int, re.findall(r"\b\d+\b", words))) for command, words in rows}
    assert told == STATUSES


def parameters_of_0_1() -> dict[str, list[str]]:
    """Return the parameters that each experiment had in 0.1."""
    return dict(json.loads((DATA / "parameters_0_1.json").read_text()))


@pytest.mark.parametrize("name", parameters_of_0_1())
def test_experiments_take_the_parameters_of_0_1(name: str) -> None:
    known = systems.experiment(name).parameters.model_fields
    assert set(parameters_of_0_1()[name]) - set(known) == set()


# What 0.1 said of its recording: the ratio of the second variant to the first, and its interval
# (in three digits by now).
OF_THE_RECORDING = {
    "throughput": "0.765 [0.571, 0.968]",
    "mean response time": "1.31 [1.03, 1.75]",
    "p50 of the response time": "1.37 [1.10, 1.62]",
    "p99 of the response time": "1.01 [0.458, 2.53]",
    "CPU time per request": "1.36 [1.18, 1.56]",
    "largest memory": "1.00 [0.998, 1.00]",
}


@pytest.mark.promise
def test_a_recording_of_0_1_is_read_and_says_what_it_said() -> None:
    files = {path.name for path in RECORDING.rglob("*.*") if path.is_file()}
    assert set(re.findall(r"(\w+\.(?:json|parquet))`", section("Recordings"))) == files
    run = Run(RECORDING)
    assert run.problems == []
    assert len(run.valid_trials()) == len(run.trials()) == 6
    assert len(run.table("requests")) == 8469
    found = perflab.findings(run).table.set_index("response")["measured [95%]"]
    assert {name: found[name] for name in OF_THE_RECORDING} == OF_THE_RECORDING
