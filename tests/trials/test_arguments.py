"""With from_run or resume the run's own parameters count, and different ones are refused."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from perflab import api
from perflab.cli import main
from perflab.errors import ParameterError, RunInterrupted, RunNotFound
from perflab.project import OF_THE_NOTEBOOK
from perflab.systems import experiment
from perflab.trials.arguments import asked_for, order_of
from perflab.trials.experiment import Experiment
from perflab.trials.plan import Order
from tests.support.synthetic import write_run
from tests.systems.custom.test_variants import two_revisions
from tests.systems.planned import plan_of

SMALL = {"requests": 60, "concurrency": 5, "workers": 1, "pool_size": 4, "blocks": 3, "seed": 7}


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PERFLAB_RUNS", str(tmp_path))
    return tmp_path


def recorded(runs: Path, name: str = "synchronous_commit", **values: object) -> str:
    """Write a run with these parameters."""
    words = plan_of(name, **{**SMALL, **values}).parameters
    run = write_run(runs, experiment=name, blocks=1, requests=60)
    record = json.loads((run.path / "run.json").read_text())
    (run.path / "run.json").write_text(json.dumps({**record, "parameters": words}))
    return run.run_id


def defaults_cell(name: str, **changes: object) -> str:
    """Return a cell that assigns every parameter, as notebooks have it."""
    fields = experiment(name).parameters.model_fields
    values = {key: field.get_default() for key, field in fields.items()} | changes
    lists = {key: list(item) if isinstance(item, tuple) else item for key, item in values.items()}
    return "\n".join(f"{key}: object = {value!r}" for key, value in lists.items())


def run_cells(name: str, *cells: str) -> Any:
    """Return the parameters of a notebook whose cells were run in this order."""
    namespace: dict[str, object] = {}
    for cell in cells:
        exec(cell, namespace)
    return api.notebook_parameters(name, {**namespace, "In": ["", *cells]})


def in_notebook(name: str = "synchronous_commit", cell: str = "", **changes: object) -> Any:
    """Return the parameters of a notebook whose cell assigns all defaults, and then changes."""
    return run_cells(name, defaults_cell(name, **changes), cell)


NAME = "synchronous_commit"
DEFAULTS = defaults_cell(NAME)


@pytest.mark.parametrize(("value", "refused"), [(4, True), (8, False)])
def test_values_that_the_cell_of_defaults_sets_again_are_refused(value: int, refused: bool) -> None:
    cells = (f"# Parameters\nblocks = {value}\n", DEFAULTS)
    if not refused:
        assert run_cells(NAME, *cells).blocks == value
        return
    with pytest.raises(ParameterError, match="blocks = 4 was given, but the notebook has 8"):
        run_cells(NAME, *cells)


def test_a_typo_in_the_cell_of_defaults_is_refused_and_its_mended_cell_is_not() -> None:
    typo = DEFAULTS.replace("blocks: object = 8", "bloks: object = 3", 1)
    with pytest.raises(ParameterError) as caught:
        run_cells(NAME, typo)
    assert "'bloks' is no parameter (did you mean 'blocks'?)" in str(caught.value)
    assert "lacks blocks: add it again" in str(caught.value)
    with pytest.raises(ParameterError, match=r"'bloks' is no parameter \(did you mean 'blocks'"):
        run_cells(NAME, f"{DEFAULTS}\nbloks = 3\n")
    # A line of the cell may be written again without its type.
    assert run_cells(NAME, DEFAULTS.replace("blocks: object = 8", "blocks = 3", 1)).blocks == 3
    mended = typo.replace("bloks", "blocks")
    assert run_cells(NAME, typo, "parameters = 1", mended).blocks == 3


PLAIN = DEFAULTS.replace(": object =", " =")
TYPO = ("blocks: object = 8", "bloks: object = 3")


@pytest.mark.promise
@pytest.mark.parametrize("magic", ["time", "capture"])
def test_a_typo_below_a_magic_of_the_cell_of_defaults_is_refused(magic: str) -> None:
    typo = DEFAULTS.replace(*TYPO, 1)
    namespace: dict[str, object] = {}
    exec(typo, namespace)
    # So the history holds a cell that begins with %%time.
    history = ["", f"get_ipython().run_cell_magic({magic!r}, '', {typo!r})\n"]
    with pytest.raises(ParameterError, match=r"'bloks' is no parameter \(did you mean 'blocks'"):
        api.notebook_parameters(NAME, {**namespace, "In": history})


@pytest.mark.promise
@pytest.mark.parametrize(
    "cell",
    [
        PLAIN.replace("blocks = 8", "bloks = 3", 1),
        DEFAULTS.replace("blocks: object = 8", "blocks, bloks = 8, 3", 1),
        f"{DEFAULTS}\nif True:\n    bloks = 3\n",
        f"{PLAIN}\nblocks, (bloks, *_) = 8, (3,)\n",
    ],
    ids=["no types", "a pair", "in a branch", "no types, and a nested pair"],
)
def test_a_typo_is_refused_however_the_cell_of_defaults_sets_it(cell: str) -> None:
    with pytest.raises(ParameterError, match="'bloks' is no parameter"):
        run_cells(NAME, cell)


def test_other_cells_may_set_any_name() -> None:
    assert run_cells(NAME, PLAIN).blocks == 8
    others = "bloks = 3\nlabels, xlim = 'a', 3", "def plot():\n    size = 3\nplot()"
    assert run_cells(NAME, DEFAULTS, *others).blocks == 8
    assert run_cells(NAME, f"{DEFAULTS}\n{others[1]}\n").blocks == 8
    # Papermill may inject most of the parameters.
    injected = "# Parameters\n" + "\n".join(PLAIN.splitlines()[:-2])
    assert run_cells(NAME, DEFAULTS, injected).blocks == 8
    assert run_cells(NAME, injected).blocks == 8


PROJECT = """
fail_on = ["p99>1.1"]
[service]
command = "python3 app.py {port}"
[service.env]
MODE = "test"
[load]
path = "/items"
users = 8
"""


def test_a_notebook_takes_what_it_is_not_given_from_the_projects_file(tmp_path: Path) -> None:
    (tmp_path / "perflab.toml").write_text(PROJECT)
    revisions = [f"{each}=tree:{tmp_path}" for each in ("old", "new")]
    cell = defaults_cell("custom_service", project=str(tmp_path / "perflab.toml"), users=2)
    shorter = "\n".join(line for line in cell.splitlines() if not line.startswith("command:"))
    injected = f"# Parameters\nvariants = {revisions}\nenv = ['MODE=other']\n"
    read = run_cells("custom_service", shorter, injected)
    assert (read.command, read.path, read.users) == ("python3 app.py {port}", "/items", 2)
    assert (read.env, read.folder, read.project) == (("MODE=other",), str(tmp_path), "")
    own = [f"{each}=command:python3 other.py {{port}}" for each in ("old", "new")]
    assert run_cells("custom_service", cell, f"# Parameters\nvariants = {own}").command == ""
    with pytest.raises(ParameterError, match="give variants, or against"):
        run_cells("custom_service", cell)
    (tmp_path / "perflab.toml").write_text("[load]\npath.x = 1\n")
    with pytest.raises(ParameterError, match=r"perflab.toml, line 2: load.path.x is within"):
        run_cells("custom_service", cell)


def test_a_value_that_stands_in_no_cell_of_defaults_does_not_count_unseen() -> None:
    shorter = defaults_cell("custom_service").replace("needs: object = []", "")
    assert run_cells("custom_service", shorter).needs == ()
    with pytest.raises(ParameterError, match="the cell of defaults lacks needs: add it again"):
        run_cells("custom_service", "needs = ['db=postgres']", shorter)


def test_cells_that_are_run_again_after_an_edit_count_as_they_were_run_last() -> None:
    injected = "# Parameters\nblocks = 2\n"
    edited = injected.replace("2", "3")
    assert run_cells(NAME, DEFAULTS, injected, edited).blocks == 3
    assert run_cells(NAME, DEFAULTS, injected, DEFAULTS).blocks == 8


def test_other_cells_and_papermills_own_paths_are_no_parameters() -> None:
    plot = "# Parameters of my plot\nlabels = 'large'\nxlim = 3"
    paths = "# Parameters\nPAPERMILL_INPUT_PATH = 'a'\nPAPERMILL_OUTPUT_PATH = 'b'\nblocks = 3"
    assert run_cells(NAME, DEFAULTS, paths, plot).blocks == 3
    with pytest.raises(ParameterError, match="unknown parameter 'bloks'"):
        run_cells(NAME, DEFAULTS, "# Parameters\nbloks = 3")


def test_a_notebook_that_shows_a_run_prints_the_parameters_of_that_run(runs: Path) -> None:
    run_id = recorded(runs)
    shown = in_notebook(from_run=run_id)
    assert {name: getattr(shown, name) for name in SMALL} == SMALL
    assert shown.backend == "process"
    assert shown.warmup_requests == 2000
    assert api.run("synchronous_commit", shown).run_id == run_id


@pytest.mark.promise
def test_every_parameter_in_which_the_run_differs_is_named_with_both_values(runs: Path) -> None:
    run_id = recorded(runs)
    for given in (
        {"from_run": run_id, "requests": 100, "driver": "asyncpg"},
        {"cell": f"# Parameters\nfrom_run = '{run_id}'\nrequests = 100\ndriver = 'asyncpg'\n"},
    ):
        with pytest.raises(ParameterError) as caught:
            in_notebook(**given)  # type: ignore[arg-type]
        assert "requests = 100 is given, the run has 60" in str(caught.value)
        assert "driver = 'asyncpg' is given, the run has 'psycopg2'" in str(caught.value)
        assert "workers" not in str(caught.value)
        assert "measure anew without from_run" in str(caught.value)


def test_a_default_counts_as_given_where_papermill_injects_it_and_not_in_the_cell(
    runs: Path,
) -> None:
    run_id = recorded(runs)
    assert in_notebook(from_run=run_id, requests=1000).requests == 60
    with pytest.raises(ParameterError, match="requests = 1000 is given, the run has 60"):
        in_notebook(cell=f"# Parameters\nfrom_run = '{run_id}'\nrequests = 1000\n")


def test_equal_values_and_open_choices_do_not_contradict_the_run(runs: Path) -> None:
    run_id = recorded(runs, "sync_vs_async", round_trip_ms=[0, 1])
    given = {**SMALL, "from_run": run_id, "round_trip_ms": "0,1", "wait_s": 5}
    shown = in_notebook("sync_vs_async", **given)
    assert shown.round_trip_ms == (0.0, 1.0)
    assert shown.wait_s == 5
    assert in_notebook(
        "sync_vs_async", f"# Parameters\nfrom_run = '{run_id}'\nbackend = 'auto'\nseed = None\n"
    )
    with pytest.raises(ParameterError, match="backend = 'docker' is given, the run has 'process'"):
        in_notebook("sync_vs_async", from_run=run_id, backend="docker")


def test_a_run_is_not_resumed_with_other_parameters(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = recorded(runs)
    with pytest.raises(ParameterError, match="blocks = 12 is given, the run has 3"):
        api.run("synchronous_commit", {"resume": run_id, "blocks": 12})
    with pytest.raises(ParameterError, match="give only one of them"):
        api.run("synchronous_commit", {"resume": run_id, "from_run": run_id})
    words = ["run", "--resume", run_id, "-p", "requests=20", "--backend", "docker"]
    monkeypatch.setattr(sys, "argv", ["perflab", *words])
    with pytest.raises(SystemExit, match="2"):
        main()
    errors = capsys.readouterr().err
    assert "requests = 20 is given, the run has 60" in errors
    assert "backend = 'docker' is given, the run has 'process'" in errors


def test_a_run_whose_parameters_are_refused_today_can_still_be_shown(runs: Path) -> None:
    run_id = recorded(runs)
    file = runs / run_id / "run.json"
    file.write_text(file.read_text().replace('"pool_size": 4', '"pool_size": 0'))
    shown = in_notebook(from_run=run_id)
    assert shown.pool_size == 0
    assert api.run("synchronous_commit", shown).run_id == run_id


def test_a_preset_takes_the_place_of_defaults_in_a_notebook_too() -> None:
    published = in_notebook("inference_runtime", preset="published", concurrency=10)
    assert (published.requests, published.concurrency) == (1000, 10)
    cell = "# Parameters\npreset = 'published'\nrequests = 250\n"
    assert in_notebook("inference_runtime", cell).requests == 250


def test_the_seed_of_a_notebooks_run_is_drawn_for_every_run() -> None:
    chosen = experiment("synchronous_commit")
    parameters = asked_for(chosen, in_notebook(blocks=3))
    first, second = (order_of(chosen, parameters).plan for _ in range(2))
    assert first.seed != second.seed
    assert first.parameters["seed"] == first.seed
    assert first.treatments == second.treatments


def test_a_run_checks_its_parameters_once_and_plans_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()

    def counted(place: Any, name: str) -> None:
        function = getattr(place, name)

        def call(*values: Any) -> Any:
            calls[name] += 1
            return function(*values)

        monkeypatch.setattr(place, name, call)

    def conducted(*_: object) -> None:
        raise RunInterrupted("before the first trial")

    monkeypatch.setattr(api, "conduct", conducted)
    counted(Experiment, "check")
    counted(Experiment, "plan")
    given: list[Any] = [{"blocks": 3}, experiment(NAME).parameters(blocks=3)]
    for values, checks in zip(given, (1, 0), strict=True):
        calls.clear()
        with pytest.raises(RunInterrupted):
            api.run(NAME, values)
        assert (calls["check"], calls["plan"]) == (checks, 1)


def test_the_latest_run_to_resume_is_one_that_has_not_finished(runs: Path) -> None:
    unfinished = recorded(runs)
    (runs / unfinished).rename(runs / f"{unfinished}-a")
    unfinished = f"{unfinished}-a"
    file = runs / unfinished / "run.json"
    file.write_text(file.read_text().replace('"state": "finished"', '"state": "interrupted"'))
    finished = write_run(runs, experiment=NAME, blocks=1, requests=60).run_id
    for word in ("latest", f"latest:{NAME}"):
        assert in_notebook(resume=word).resume == unfinished
        assert api.open_run(word).run_id == finished
    with pytest.raises(RunNotFound, match=r"is unfinished \(unfinished ones: synchronous_commit\)"):
        in_notebook("sync_vs_async", resume="latest:sync_vs_async")


def test_a_finished_run_is_shown_where_it_is_to_be_resumed(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def conducted(*_: object) -> None:
        raise RunInterrupted("services would start")

    monkeypatch.setattr(api, "conduct", conducted)
    run_id = recorded(runs)
    assert api.run(NAME, {"resume": run_id}).run_id == run_id
    # A block that lost a trial is measured again.
    shutil.rmtree(next((runs / run_id / "trials").iterdir()))
    with pytest.raises(RunInterrupted):
        api.run(NAME, {"resume": run_id})


def test_a_finished_duel_can_be_asked_for_its_why_and_for_nothing_else(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = []

    def conducted(order: Order, _show: object) -> Path:
        orders.append(order)
        return runs / run_id

    monkeypatch.setattr(api, "conduct", conducted)
    variants = ["a=command:sleep {port}", "b=command:sleep {port} --fast"]
    words = plan_of("custom_service", variants=variants).parameters
    run_id = write_run(runs, experiment="custom_service", blocks=1, parameters=words).run_id
    api.run("custom_service", {"resume": run_id})
    assert not orders
    for why in (True, "yes"):
        api.run("custom_service", {"resume": run_id, "why": why})
        assert orders.pop().plan.why
    for refused in ({"from_run": run_id, "why": True}, {"resume": run_id, "users": 31}):
        with pytest.raises(ParameterError, match="is given, the run has"):
            api.run("custom_service", refused)


def test_a_revision_that_names_the_variants_of_the_run_does_not_contradict_it(
    runs: Path, tmp_path: Path
) -> None:
    files = ("one.py", "1"), ("two.py", "2"), ("three.py", "3")
    shop = two_revisions(tmp_path / "shop", *files)
    own = {"folder": str(shop), "command": "python3 -m http.server {port}"}
    custom = experiment("custom_service")
    recorded = custom.check({**own, "against": "v1"}).model_dump(mode="json")
    run_id = write_run(runs, experiment="custom_service", blocks=1, parameters=recorded).run_id
    asked = {**own, "resume": run_id, "against": "v1"}
    assert asked_for(custom, asked).model_dump()["variants"] == tuple(recorded["variants"])
    with pytest.raises(ParameterError, match=r"variants = .* is given, the run has"):
        asked_for(custom, {**asked, "against": "v2"})


def test_a_run_is_resumed_by_a_path_from_the_working_folder_on(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs.parent)
    run_id = recorded(runs)
    resume = str(Path(runs.name) / run_id)
    checked = asked_for(experiment(NAME), {"resume": resume})
    order = order_of(experiment(NAME), checked)
    assert order.resume == runs / run_id


def test_what_a_projects_notebook_began_with_does_not_keep_it_from_showing_a_run(
    runs: Path,
) -> None:
    variants = ["a=command:sleep {port}", "b=command:sleep {port} --fast"]
    words = plan_of("custom_service", variants=variants, path="/items").parameters
    run_id = write_run(runs, experiment="custom_service", blocks=1, parameters=words).run_id
    cell = defaults_cell("custom_service", **OF_THE_NOTEBOOK, from_run=run_id)
    assert run_cells("custom_service", cell).path == "/items"
    edited = defaults_cell("custom_service", **OF_THE_NOTEBOOK, from_run=run_id, users=31)
    with pytest.raises(ParameterError, match="users = 31 is given"):
        run_cells("custom_service", edited)


def unset(**values: object) -> list[str]:
    """Return what is said of variables of a duel that are not set."""
    chosen = experiment("custom_service")
    with pytest.raises(ParameterError) as caught:
        order_of(chosen, asked_for(chosen, values))
    return list(caught.value.problems)


def test_what_needs_a_variable_that_is_not_set_is_named_without_its_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("CLIENT_UNSET", "ADMIN_UNSET"):
        monkeypatch.delenv(name, raising=False)
    client, admin = unset(
        env=["TOKENS=x:{env:CLIENT_UNSET}", "PLAIN=a value", "ADMIN_UNSET"],
        requests=[
            {"name": "client", "path": "/long", "headers": {"X-Key": "{env:CLIENT_UNSET}"}},
            {"name": "other", "path": "/other", "body": "{env:ADMIN_UNSET}"},
        ],
    )
    assert client == (
        "the environment variable CLIENT_UNSET is not set: set it, or give its value or another "
        "variable instead; needed by env TOKENS, headers of the request 'client'"
    )
    assert admin == (
        "the environment variable ADMIN_UNSET is not set: set it, or give its value or another "
        "variable instead; needed by env ADMIN_UNSET, body of the request 'other'"
    )
    (header,) = unset(headers=["Authorization: Bearer {env:CLIENT_UNSET}"])
    assert header.endswith("(-H 'Authorization: env:NAME'); needed by headers Authorization")
