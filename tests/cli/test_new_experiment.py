"""`perflab new experiment`: what it lays out, and where a user's own experiments are found."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from perflab.cli.scaffold import lay_out
from perflab.errors import ParameterError
from perflab.host import facts
from perflab.host.placing import placement
from perflab.paths import FOREIGN, foreign_dirs, foreign_system, notebook_file, project_root
from perflab.project import FILE, project, project_file
from perflab.recordings import check_same
from perflab.stacks.process_backend import ProcessBackend
from perflab.stacks.spec import load_service
from perflab.trials.conductor import new_record
from tests.support import shop
from tests.systems.planned import plan_of


def written(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*")}


@pytest.mark.slow
def test_the_files_of_an_experiment_are_clean_by_the_rules_of_the_lab(here: Path) -> None:
    home, files = lay_out("cart_speed")
    assert files[0] == here / "perflab.toml"
    assert all(file.is_file() for file in files)
    assert not re.search(r"@[A-Z_]+@", "".join(file.read_text() for file in files))
    clean(home)
    settings = str(project_root() / "pyproject.toml")
    server = home / "services" / home.name / "server.py"
    words = ["mypy", "--strict", "--config-file", settings, str(server)]
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def clean(home: Path) -> None:
    """Require that an experiment's files are clean by the rules of the lab."""
    settings = str(project_root() / "pyproject.toml")
    config = ["--config", settings, "--no-cache"]
    imports = ["--config", 'lint.isort.known-third-party=["perflab"]']
    for words in (
        ["ruff", "check", *config, *imports, str(home)],
        ["ruff", "format", "--check", *config, str(home)],
    ):
        done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("class", "cannot be the name of a module"),
        ("../cart", "cannot be the name of a module"),
        ("synchronous_commit", "taken by an experiment"),
        ("chat", "taken by a system"),
        ("echo", "taken by a service"),
        ("there", "exists; choose another name"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(name: str, expected: str, here: Path) -> None:
    (here / "perflab_experiments" / "there").mkdir(parents=True)
    before = written(here)
    with pytest.raises(ParameterError) as caught:
        lay_out(name)
    assert expected in str(caught.value)
    assert written(here) == before


def test_a_second_one_goes_where_the_file_says(here: Path) -> None:
    lay_out("one")
    (here / "deep").mkdir()
    os.chdir(here / "deep")
    second, files = lay_out("two")
    assert second == here / "perflab_experiments" / "two"
    assert all(file.is_relative_to(second) for file in files)


def test_the_variable_goes_before_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    homes = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        homes.append(lay_out("mine")[0].parent)
    first, second = homes
    (second / "deep").mkdir()
    monkeypatch.chdir(second / "deep")
    assert foreign_dirs() == [second]
    monkeypatch.setenv(FOREIGN, str(first))
    assert foreign_dirs() == [first, second], "the first system of a name counts"


@pytest.mark.usefixtures("here")
def test_another_s_run_may_be_resumed_after_an_experiment_was_added() -> None:
    plan = plan_of("client_overhead", seed=1)
    backend = ProcessBackend()
    before = new_record(plan, backend, placement())
    fingerprint = facts.code()["fingerprint"]
    lay_out("mine")
    assert facts.code()["fingerprint"] != fingerprint
    now = new_record(plan, backend, placement())
    assert now.code["fingerprint"] == before.code["fingerprint"]
    name = plan.treatments[0].name
    assert now.whole(name) == before.whole(name)
    check_same(before, now)


def test_an_own_run_depends_on_all_own_systems_which_it_may_import(here: Path) -> None:
    for name in ("one", "two"):
        lay_out(name)
    before = facts.code({"one"})["fingerprint"]
    (here / "perflab_experiments" / "two" / "more.py").write_text("x = 1\n")
    assert facts.code({"one"})["fingerprint"] != before


@pytest.mark.usefixtures("here")
def test_files_know_their_system_and_notebooks_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    home = lay_out("mine")[0]
    assert foreign_system(home / "services" / "mine") == "mine"
    assert foreign_system(Path(facts.__file__)) == ""
    assert notebook_file("mine") == home / "notebooks" / "mine.ipynb"
    assert notebook_file("flush_map").is_file()
    # A folder that is named twice counts once.
    monkeypatch.setenv(FOREIGN, f"{home.parent}{os.pathsep}{home.parent}")
    assert foreign_dirs() == [home.parent]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[experiments", "cannot be read"),
        ("[experiment]\nfolders = []\n", r"\[experiment\] has no meaning; there are: results, exp"),
        ("results = 1\n", r"results must be a table: \[results\]"),
        ("[results]\nrun = 'x'\n", r"run of \[results\] has no meaning; there are: runs, figures"),
        ("[results]\nruns = ['x']\n", 'runs of .* must be a folder, as "perflab-runs"'),
        ('[experiments]\nfolders = "x"\n', "must be a list of folders"),
        ("[experiments]\nfolders = [1]\n", "must be a list of folders"),
        ('[experiments]\nfolders = ["nowhere"]\n', "is no folder; make it"),
    ],
)
def test_a_faulty_file_is_named_with_its_fault(text: str, expected: str, here: Path) -> None:
    (here / FILE).write_text(text)
    with pytest.raises(ParameterError, match=expected) as caught:
        project()
    assert str(here / FILE) in str(caught.value)


def test_a_file_that_others_may_change_is_refused_and_that_of_another_user_passed_over(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = here / FILE
    file.write_text('[results]\nruns = "measured"\n')
    assert project_file() == file
    file.chmod(0o646)
    with pytest.raises(ParameterError, match="chmod go-w"):
        project_file()
    os.chown(file, 61_234, -1) if os.getuid() == 0 else monkeypatch.setattr("os.getuid", lambda: 1)
    assert project_file() is None


PROJECT = """
[service]
command = "{python} app.py serve {{port}}"
setup = "{python} app.py fill 40"
health = "/health"
env_file = ".env.test"
needs = {{db = "redis"}}

[service.env]
DATABASE_URL = "{{db.url}}"
NAME = "shop of 'mine'"

[load]
path = "/items"
"""


@pytest.fixture
def shop_here(here: Path) -> Path:
    """A project whose file describes a service with a store."""
    shutil.copy(shop.__file__, here / "app.py")
    (here / FILE).write_text(PROJECT.format(python=sys.executable))
    (here / ".env.test").write_text("# where it notes\nexport NOTES=elsewhere\n")
    return here


@pytest.mark.slow
def test_an_experiment_begins_with_the_service_of_the_projects_file_and_runs(
    shop_here: Path, tmp_path: Path
) -> None:
    home, files = lay_out("shopping")
    assert not [file for file in files if file.name in ("server.py", "Dockerfile", FILE)]
    described = tomllib.loads((home / "services" / "shopping" / "service.toml").read_text())
    assert described["environment"]["LEVEL"] == "{level}"
    assert described["environment"]["NOTES"] == "{env:NOTES}"
    assert str(shop_here) not in "".join(file.read_text() for file in files)
    clean(home)
    notes = tmp_path / "notes"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(home / "tests")],
        cwd=shop_here,
        capture_output=True,
        text=True,
        env={**os.environ, "NOTES": str(notes), "PYTHONPATH": str(project_root())},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.removeprefix("shop of 'mine' ") for line in notes.read_text().splitlines()]
    assert lines.count("filled") == 2, "each treatment has a store of its own"
    found = [line.partition(" at ")[0] for line in lines if line.startswith("found")]
    assert set(found) == {"found 40"}


def test_an_experiment_has_the_servers_in_images_that_the_service_needs(
    shop_here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perflab.systems.custom.needs.docker_client", object)
    image = '{db = "redis", search = {image = "x:1", port = 9200, env = {"a.b" = "c"}}}'
    file = shop_here / FILE
    file.write_text(file.read_text().replace('{db = "redis"}', image))
    home, _ = lay_out("searching")
    spec = load_service("searching_search")
    assert (spec.docker.image, spec.docker.port) == ("x:1", 9200)
    assert spec.environment == {"a.b": "c"}
    assert '"search": "searching_search"' in (home / "stacks.py").read_text()


def test_a_service_that_cannot_start_here_is_told_and_nothing_is_written(shop_here: Path) -> None:
    file = shop_here / FILE
    file.write_text(file.read_text().replace(sys.executable, "no-such-program"))
    before = written(shop_here)
    with pytest.raises(ParameterError, match=r"perflab new experiment(.|\n)*'no-such-program'"):
        lay_out("shopping")
    assert written(shop_here) == before
