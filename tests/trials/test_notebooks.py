"""Every notebook runs with small parameters, with a new run and with an existing one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import nbformat
import papermill
import pytest
import yaml

from perflab import api
from perflab.errors import ParameterError
from perflab.paths import notebooks_dir, project_root
from perflab.systems import experiment, names
from tests.golden.recordings import write_recording
from tests.trials.executed import answer_of, check_executed
from tests.trials.one_kernel import one_kernel

QUICK = {"backend": "process", "blocks": 1}
INFERENCE = {
    **QUICK, "requests": 60, "warmup_requests": 10, "concurrency": 5, "workers": 1, "pool_size": 4,
}  # fmt: skip
CLIENTS = {
    **QUICK, "client": ["lean", "aiohttp"], "rate": [100, 200], "duration_s": 0.5, "warmup_s": 0.1,
}  # fmt: skip
CHECK = {
    **QUICK, "blocks": 2, "fresh_blocks": 0, "copies": 2, "planted": [1.5], "requests": 40,
    "warmup_requests": 5, "stalls_ms": [50.0],
}  # fmt: skip
CODECS = {
    **QUICK, "requests": 6, "warmup_requests": 1, "codec": ["json", "orjson"],
    "operation": ["serialize"], "message": ["published"],
}  # fmt: skip
PROFILES = {
    **QUICK, "codec": ["json"], "users": 10, "action_s": 0.1, "join_s": 0.01, "plateau_s": 1.0,
    "rate_hz": 200,
}  # fmt: skip
CHATTERS = {
    **QUICK, "join_s": 0.02, "action_s": 0.25, "plateau_s": 0.5, "bcrypt_rounds": 4,
}  # fmt: skip
DOWNLOADS = {
    **QUICK, "sets": ["clients"], "clients": 12, "model_bytes": 100_000, "timeout_s": 5.0,
    "models": 2,
}  # fmt: skip
CONNECTIONS = {
    **QUICK, "sets": ["naive"], "rungs": ["thread_closes_new", "naive_closes_new"],
    "target_rate": 200.0, "duration_s": 0.4, "warmup_s": 0.1,
}  # fmt: skip
STREAMS = {
    **QUICK, "rungs": ["stream_old", "stream_new"], "users": 12, "duration_s": 1.5,
    "warmup_s": 0.5, "interval_s": 0.5, "tokens": 10,
}  # fmt: skip
# Each notebook measures once; these do so in another test: by papermill's command line, as the
# main job.
ELSEWHERE = {"serialization": "below", "synchronous_commit": "tests/cli/test_lab.py"}
# This one is quick enough for `make test`; `make slow` runs all others.
SMALLEST = "client_overhead"
SMALL = {
    "client_overhead": CLIENTS,
    "lab_check": CHECK,
    "profile": PROFILES,
    "inference_runtime": INFERENCE,
    "sync_vs_async": {**INFERENCE, "round_trip_ms": [0.0], "pool_minconn": ["max"]},
    "flush_map": {**INFERENCE, "flush_ms": [2.0], "pool_size": [1]},
    "chat_ladder": {**CHATTERS, "rungs": ["json_25", "best_25"]},
    "latency_cpu": {**CHATTERS, "users": 25},
    "registry_downloads": DOWNLOADS,
    "connection_lifecycle": CONNECTIONS,
    "llm_streaming": STREAMS,
    "custom_service": {"blocks": 1, "duration_s": 0.5, "warmup_s": 0.1, "users": 1},
}


# What stands in a project's perflab.toml, and not in the notebook.
OF_A_FILE = (
    "command", "prepare", "setup", "health", "metrics", "start_timeout_s", "env", "env_file",
    "needs", "also", "header_file", "secret", "requests", "script",
)  # fmt: skip


def parameters_cell(name: str) -> str:
    notebook = nbformat.read(notebooks_dir() / f"{name}.ipynb", as_version=4)
    cells = [c for c in notebook.cells if "parameters" in c.metadata.get("tags", [])]
    assert len(cells) == 1
    return str(cells[0].source)


@pytest.mark.parametrize("name", names())
def test_the_parameters_cell_agrees_with_the_experiment(name: str) -> None:
    defaults: dict[str, object] = {}
    exec(parameters_cell(name), defaults)
    values = {key: value for key, value in defaults.items() if not key.startswith("__")}
    lacking = set(experiment(name).parameters.model_fields) - set(values)
    assert lacking == ({*OF_A_FILE} if name == "custom_service" else set())
    assert experiment(name).check(values) == experiment(name).check({})


@pytest.fixture(scope="module")
def engine() -> Iterator[str]:
    """Start one kernel for all notebooks: its start and the import of the lab take longest."""
    with one_kernel() as name:
        yield name


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == SMALLEST else [pytest.mark.slow])
        for name in names()
        if name not in ELSEWHERE
    ],
)
def test_a_notebook_measures_judges_and_saves_figures(
    name: str, tmp_path: Path, engine: str
) -> None:
    done = tmp_path / "done.ipynb"
    execute(name, done, SMALL[name], engine)
    check_executed(name, done)


@pytest.mark.slow
def test_the_command_line_of_papermill_measures_and_the_run_is_shown_again(
    tmp_path: Path, engine: str
) -> None:
    first, again = tmp_path / "first.ipynb", tmp_path / "again.ipynb"
    typed("serialization", first, CODECS)
    run = check_executed("serialization", first)
    before = [run.run_id for run in api.runs()]
    execute("serialization", again, {"from_run": run.run_id}, engine)
    assert [run.run_id for run in api.runs()] == before
    assert answer_of(first) == answer_of(again)


@pytest.mark.slow
def test_the_overview_shows_the_rows_that_an_existing_run_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = tmp_path / "runs"
    monkeypatch.setenv("PERFLAB_RUNS", str(runs))
    run = write_recording(runs, "latency_cpu/claimed")
    done = tmp_path / "overview.ipynb"
    # It has a kernel of its own, with this folder of runs.
    execute("overview", done, {})
    assert f"; run {run.run_id}" in done.read_text()


@pytest.mark.slow
def test_the_first_page_leads_to_every_experiment(tmp_path: Path, engine: str) -> None:
    done = tmp_path / "start.ipynb"
    execute("00_start", done, {}, engine)
    shown = done.read_text()
    for name in names():
        assert f'href=\\"{name}.ipynb\\"' in shown


def test_published_numbers_are_checked_without_any_run(tmp_path: Path, engine: str) -> None:
    done = tmp_path / "published_numbers.ipynb"
    execute("published_numbers", done, {"study": "metricstream"}, engine)
    shown = done.read_text()
    assert "2 to 3 in flight of 100 users" in shown
    assert "inconsistent" in shown
    # Runs of other tests may answer some rows.
    assert "68 published rows. " in shown


def execute(
    name: str, target: Path, parameters: Mapping[str, Any], engine: str | None = None
) -> None:
    """Execute a notebook by papermill, in a kernel of its own unless an engine is named."""
    papermill.execute_notebook(
        str(notebooks_dir() / f"{name}.ipynb"), str(target), parameters=dict(parameters),
        cwd=str(project_root()), progress_bar=False, kernel_name="python3", engine_name=engine,
    )  # fmt: skip


def typed(name: str, target: Path, parameters: Mapping[str, object]) -> None:
    """Execute a notebook by the plain command line of papermill."""
    text = yaml.safe_dump(dict(parameters))
    subprocess.run(
        [sys.executable, "-m", "papermill", str(notebooks_dir() / f"{name}.ipynb"), str(target),
         "-y", text, "--no-progress-bar", "-k", "python3"],
        cwd=project_root(), check=True, capture_output=True,
    )  # fmt: skip


def test_an_unknown_name_that_papermill_injected_is_refused() -> None:
    namespace = {"blocks": 2, "blokcs": 3, "In": ["", "# Parameters\nblokcs = 3\n"]}
    with pytest.raises(ParameterError, match="did you mean 'blocks'"):
        api.notebook_parameters("synchronous_commit", namespace)


def test_refused_parameters_leave_no_earlier_run_to_the_cells_below() -> None:
    namespace = {"blocks": -1, "parameters": "of before", "run": "of before"}
    with pytest.raises(ParameterError, match="blocks = -1"):
        api.notebook_parameters("synchronous_commit", namespace)
    assert set(namespace) == {"blocks"}
