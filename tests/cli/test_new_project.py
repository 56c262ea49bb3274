"""`perflab new project` and `perflab new notebook`, and where a project's results go."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from perflab import paths
from perflab.cli.scaffold import copy_notebook, lay_out, new_project
from perflab.errors import ParameterError
from perflab.project import FILE


def files(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*.*")}


def results() -> list[Path]:
    return [paths.runs_dir(), paths.figures_dir(), paths.sweeps_dir()]


def test_a_project_keeps_its_results_wherever_in_it_one_works(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_project()
    (here / "deep").mkdir()
    monkeypatch.chdir(here / "deep")
    assert results() == [here / "perflab-runs", here / "figures", here / "perflab-sweeps"]
    (here / FILE).write_text('[results]\nruns = "../measured"\n')
    assert results() == [here.parent / "measured", here / "figures", here / "perflab-sweeps"]
    monkeypatch.setenv("PERFLAB_RUNS", str(here / "elsewhere"))
    assert paths.runs_dir() == here / "elsewhere"


def test_the_notebook_compares_the_last_commits_and_is_otherwise_the_labs(here: Path) -> None:
    new_project()
    own = nbformat.read(here / "duel.ipynb", as_version=4)
    labs = nbformat.read(paths.notebook_file("custom_service"), as_version=4)
    differing = [
        (mine, theirs) for mine, theirs in zip(own.cells, labs.cells, strict=True) if mine != theirs
    ]
    ((mine, theirs),) = differing
    parameters: list[dict[str, object]] = [{}, {}]
    for cell, values in zip((mine, theirs), parameters, strict=True):
        exec(cell.source, values)
    mine_only = {
        name: value for name, value in parameters[0].items() if parameters[1][name] != value
    }
    mine_only.pop("__builtins__", None)
    assert mine_only == {
        "folder": ".",
        "variants": ["old=git:.@HEAD~1", "new=git:.@HEAD"],
        "command": "python3 app.py --port {port}",
    }


def test_lines_of_gitignore_are_added_once_and_others_stay(here: Path) -> None:
    (here / ".gitignore").write_text("*.pyc\nperflab-runs/")
    new_project()
    assert (here / ".gitignore").read_text() == "*.pyc\nperflab-runs/\nfigures/\nperflab-sweeps/\n"


@pytest.mark.parametrize("name", [FILE, "duel.ipynb"])
def test_what_is_there_is_not_overwritten(here: Path, name: str) -> None:
    (here / name).write_text("")
    before = files(here)
    with pytest.raises(ParameterError, match=r"already|move it away"):
        new_project()
    assert files(here) == before


def test_an_experiment_is_a_module_of_the_project(here: Path) -> None:
    new_project()
    lay_out("cart")
    (here / "prices.py").write_text("TITLE = 'what a price costs'\n")
    module = here / "perflab_experiments" / "cart" / "experiments" / "cart.py"
    text = module.read_text().replace('"cart: what a delay costs"', "prices.TITLE")
    module.write_text(
        text.replace("from pydantic import Field", "import prices\nfrom pydantic import Field")
    )
    code = (
        "from perflab import systems; import sys; print(systems.experiment('cart').title, "
        "[name for name in sys.modules if name.endswith('cart.stacks')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout == "what a price costs ['perflab_experiments.cart.stacks']\n"


@pytest.mark.parametrize("folder", ["json", "my-experiments"])
def test_a_folder_that_cannot_be_imported_by_its_name_is_told(here: Path, folder: str) -> None:
    system = here / folder / "cart" / "experiments"
    system.mkdir(parents=True)
    for place in (system, system.parent):
        (place / "__init__.py").touch()
    (system / "cart.py").touch()
    (here / FILE).write_text(f'[experiments]\nfolders = ["{folder}"]\n')
    done = subprocess.run(
        [str(Path(sys.executable).with_name("perflab")), "run", "cart"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert f"{here / folder}: the name '{folder}'" in done.stderr
    assert "give the folder another name" in done.stderr


@pytest.mark.usefixtures("here")
def test_a_notebook_is_copied_and_an_unknown_one_or_a_second_copy_refused() -> None:
    copy = copy_notebook("flush_map")
    assert copy.read_bytes() == paths.notebook_file("flush_map").read_bytes()
    with pytest.raises(ParameterError, match="exists; move it away"):
        copy_notebook("flush_map")
    with pytest.raises(ParameterError, match="did you mean 'sync_vs_async'"):
        copy_notebook("sync_vs_asynk")


def test_results_of_work_outside_of_checkout_and_project_stay_there(here: Path) -> None:
    assert results() == [here / "perflab-runs", here / "figures", here / "perflab-sweeps"]
    os.chdir(paths.project_root() / "docs")
    assert paths.runs_dir() == paths.project_root() / "data" / "runs"
