"""An effect over commits and days, as its users ask for it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import perflab as lab
from perflab.analysis.curves.shifts import ENOUGH
from perflab.figures import provenance
from tests.across.history_of_runs import OTHER, add_days, add_run
from tests.cli.conftest import perflab  # noqa: F401

EXPERIMENT = "synchronous_commit"
CHANGED_FROM, DAYS = 11, 22
Type = Callable[..., tuple[str, str]]


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """22 days with a change on the 12th, three runs on another machine, two on another backend."""
    root = tmp_path_factory.mktemp("changed") / "runs"
    add_days(root, DAYS, CHANGED_FROM)
    for day in range(3):
        add_run(root, day, machine=OTHER, run_id=f"elsewhere{day}", ratio=1.1)
    for day in range(2):
        add_run(root, day, backend="docker")
    add_run(root, 23, state="interrupted", run_id="broken-off")
    return root


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("steady") / "runs"
    add_days(root, 14)
    return root


@pytest.fixture
def here(changed: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PERFLAB_RUNS", str(changed))
    return changed


@pytest.mark.usefixtures("here")
def test_a_change_is_found_at_its_run_with_its_size_and_interval() -> None:
    (change,) = lab.trend(EXPERIMENT).changes.to_dict("records")
    assert change["first_run"] == f"day{CHANGED_FROM}-process"
    assert change["commit"] == f"{CHANGED_FROM:040x}"
    assert change["low"] < 1.2 / 1.6 < change["high"] < 1
    assert (change["runs_before"], change["runs_after"]) == (CHANGED_FROM, DAYS - CHANGED_FROM)
    assert change["p_value"] < 0.01


@pytest.mark.usefixtures("here")
def test_runs_on_unlike_machines_and_backends_are_series_of_their_own() -> None:
    found = lab.trend(EXPERIMENT)
    assert sorted(len(each.table) for each in found.series) == [2, 3, DAYS]
    headings = {len(each.table): found.heading(each) for each in found.series}
    assert "another, 8 cores, 16 GiB, kernel 6.1" in headings[3]
    assert "docker" in headings[2]
    assert "process; synthetic, 2 cores" in headings[DAYS]
    few = {each.said() for each in found.series if not each.enough}
    assert few == {f"{n} runs are too few to test for a change (it takes {ENOUGH})" for n in (2, 3)}
    assert found.notes == ("left out: 1 unfinished run",)


def test_runs_with_other_parameters_are_a_series_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFLAB_RUNS", str(tmp_path))
    add_run(tmp_path, 0)
    add_run(tmp_path, 1, parameters={"requests": 4000, "seed": 1})
    found = lab.trend(EXPERIMENT)
    assert {found.heading(each).partition("requests=")[2][:4] for each in found.series} == {
        "400;", "4000",
    }  # fmt: skip


@pytest.mark.usefixtures("here")
def test_a_trend_shows_itself_with_every_run_and_what_was_left_out() -> None:
    found = lab.trend(EXPERIMENT, backend="process")
    page, text = found._repr_html_(), repr(found)
    for shown in (page, text):
        assert "day00-process" in shown
        assert "from run day11-process on times 0.7" in shown
        assert "3 runs are too few" in shown
        assert "1 unfinished run" in shown
    assert list(found.table["level"].value_counts()) == [DAYS - CHANGED_FROM + 3, CHANGED_FROM]


def test_a_regression_fails_a_pipeline_and_a_smaller_factor_is_what_it_takes(
    perflab: Type,  # noqa: F811
    changed: Path,
) -> None:
    words = ("trend", EXPERIMENT, "--backend", "process", "--fail-on")
    told, said = perflab(changed, *words, "1.1", code=3, COLUMNS="160")
    assert "x 0.7" in told
    assert "changed by 1.1 or more" in said
    # Three runs on the other machine are too few, so not all was judged.
    _, said = perflab(changed, *words, "2", code=5)
    assert "3 runs are too few to test" in said
    assert "1.1 means by 10%" in perflab(changed, *words, "0.9", code=1)[1]


def test_an_effect_that_stays_fails_no_pipeline(
    perflab: Type,  # noqa: F811
    steady: Path,
) -> None:
    told, _ = perflab(steady, "trend", EXPERIMENT, "--fail-on", "1.05", COLUMNS="160")
    assert "no change is shown over 14 runs" in told
    # From the 5th day on there are ten runs left.
    told, said = perflab(
        steady, "trend", EXPERIMENT, "--since", "2026-03-05", "--fail-on", "1.05", code=5
    )
    assert "10 runs are too few" in said
    assert "day03" not in told


def test_json_and_csv_say_the_same_to_programs(
    perflab: Type,  # noqa: F811
    changed: Path,
    tmp_path: Path,
) -> None:
    file = tmp_path / "rows.csv"
    told, _ = perflab(changed, "trend", EXPERIMENT, "--json", "--csv", str(file))
    words = json.loads(told)
    assert [each["first_run"] for each in words["changes"]] == [f"day{CHANGED_FROM}-process"]
    runs = {each["machine_id"] + each["backend"]: len(each["runs"]) for each in words["series"]}
    assert sorted(runs.values()) == [2, 3, DAYS]
    rows = list(csv.DictReader(file.open()))
    assert len(rows) == DAYS + 5
    printed, _ = perflab(changed, "trend", EXPERIMENT, "--csv", "-")
    assert list(csv.DictReader(io.StringIO(printed))) == rows


def test_the_figure_holds_its_runs_and_is_the_same_each_time(
    perflab: Type,  # noqa: F811
    changed: Path,
    tmp_path: Path,
) -> None:
    first, second = tmp_path / "a" / "trend.svg", tmp_path / "b" / "trend.svg"
    for file in (first, second):
        perflab(changed, "trend", EXPERIMENT, "--figure", str(file))
    assert first.read_bytes() == second.read_bytes()
    assert f"day{CHANGED_FROM}-process" in provenance(first)["runs"]
    assert first.read_text().count('id="change') == 1
    assert "ends in none of" in perflab(
        changed, "trend", EXPERIMENT, "--figure", str(tmp_path / "trend.gif"), code=1
    )[1]  # fmt: skip


def test_a_name_that_there_is_not_is_answered_with_the_nearest(
    perflab: Type,  # noqa: F811
    changed: Path,
) -> None:
    assert "did you mean" in perflab(changed, "trend", "synchronous_comit", code=1)[1]
    for option, value in (("--contrast", "synchronous_commit=on"), ("--response", "troughput_rps")):
        _, said = perflab(changed, "trend", EXPERIMENT, option, value, code=1)
        assert f"'{value}'" in said
        assert "there are:" in said
    told, _ = perflab(changed, "trend", EXPERIMENT, "--response", "throughput_rps")
    assert "day00-process" in told


def test_an_experiment_without_a_run_has_no_effect_and_says_so(
    perflab: Type,  # noqa: F811
    changed: Path,
) -> None:
    told, _ = perflab(changed, "trend", "sync_vs_async")
    assert "no finished run of 'sync_vs_async' has an effect" in told
    perflab(changed, "trend", "sync_vs_async", "--fail-on", "1.1", code=5)
