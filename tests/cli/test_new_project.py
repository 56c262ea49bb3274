"""`perflab new project` and `perflab new notebook`, and where a project's results go."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from perflab import paths
from perflab.cli.duel_file import given
from perflab.cli.scaffold import copy_notebook, lay_out, new_project
from perflab.errors import ParameterError
from perflab.project import FILE
from perflab.trials.parameter_file import read_parameters
from tests.cli.conftest import Tell


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
        "project": "perflab.toml",
        "variants": ["old=git:.@HEAD~1", "new=git:.@HEAD"],
    }


FASTAPI = "from fastapi import FastAPI\napi: FastAPI = FastAPI()\n@api.get('/health')\n"
FLASK = "import os, flask\napp = flask.Flask(__name__)\nURL = os.environ['DATABASE_URL']\n"
DJANGO = "KEY, MEDIA = os.environ['KEY'], os.environ['MEDIA']\nBIND = os.environ['PORT']\n"
NODE = {"scripts": {"start": "node server.js", "build": "tsc"}, "dependencies": {"ioredis": "5"}}
GO = "module shop\ngo 1.22\nrequire (\n\tgithub.com/jackc/pgx/v5 v5.7.1\n)\n"
PQ = 'package main\nfunc main() { open(os.Getenv("DATABASE_URL")) }\n'
URL = "postgresql+asyncpg://{db.user}:{db.password}@{db.host}:{db.port}/{db.name}"
VENV = "python3 -m venv .venv && .venv/bin/pip install"
# The files of a project, and the parameters that its perflab.toml has.
FOUND: dict[str, tuple[dict[str, str], dict[str, object]]] = {
    "fastapi": (
        {"pyproject.toml": '[project]\ndependencies = ["fastapi[standard]>=0.1", "SQLAlchemy",'
         '"asyncpg"]', "uv.lock": "", "src/shop/main.py": FASTAPI, "alembic.ini": "",
         ".env.example": "DB_HOST=localhost\nDATABASE_URL=\n", "tests/test_a.py": "'/ping'"},
        {"command": ".venv/bin/uvicorn shop.main:api --port {port} --app-dir src",
         "prepare": "uv sync --frozen", "health": "/health", "needs": ["db=postgres"],
         "setup": ".venv/bin/alembic upgrade head",
         "env": ["DB_HOST={db.host}", f"DATABASE_URL={URL}"]},
    ),
    "flask": (
        {"requirements.txt": "Flask==3.0\ngunicorn\npsycopg2-binary\n", "app.py": FLASK},
        {"command": ".venv/bin/gunicorn app:app --bind {host}:{port}", "needs": ["db=postgres"],
         "prepare": f"{VENV} -r requirements.txt", "env": ["DATABASE_URL={db.url}"]},
    ),
    "django": (
        {"pyproject.toml": '[project]\ndependencies = ["Django>=5", "gunicorn"]',
         "manage.py": 'os.environ["DJANGO_SETTINGS_MODULE"] = "site.settings"', "site/wsgi.py": "",
         "site/settings.py": DJANGO},
        {"command": ".venv/bin/gunicorn site.wsgi --bind {host}:{port}",
         "prepare": f"{VENV} ."},
    ),
    "procfile": (
        {"Procfile": "release: python manage.py migrate\nweb: gunicorn app --bind 0.0.0.0:$PORT\n",
         "requirements.txt": "psycopg[binary]", "app.py": ""},
        {"command": ".venv/bin/gunicorn app --bind {host}:{port}", "needs": ["db=postgres"],
         "prepare": f"{VENV} -r requirements.txt",
         "setup": ".venv/bin/python manage.py migrate"},
    ),
    "express": (
        {"package.json": json.dumps(NODE), "package-lock.json": "{}",
         "server.js": "process.env.REDIS_URL; app.get('/healthz')"},
        {"command": "node server.js", "prepare": "npm ci && npm run build", "health": "/healthz",
         "needs": ["cache=redis"], "env": ["REDIS_URL={cache.url}"]},
    ),
    "go": (
        {"go.mod": GO, "cmd/shop/main.go": 'package main\nmux.HandleFunc("GET /healthz", ok)'},
        {"command": "bin/service", "prepare": "go build -o bin/service ./cmd/shop",
         "health": "/healthz", "needs": ["db=postgres"]},
    ),
    "go with a procfile": (
        {"go.mod": GO.replace("jackc/pgx/v5", "lib/pq"), "main.go": PQ,
         "Procfile": "web: shop.app -port $PORT\nrelease: bin/shop.app -migrate"},
        {"command": "bin/service -port {port}", "prepare": "go build -o bin/service .",
         "setup": "bin/service -migrate", "needs": ["db=postgres"],
         "env": ["DATABASE_URL={db.url}?sslmode=disable"]},
    ),
    "an extra": (
        {"requirements.txt": "shopkeeper[memcached,postgresql]>=3\n",
         "Procfile": "web: shopkeeper start --port $PORT"},
        {"command": ".venv/bin/shopkeeper start --port {port}", "needs": ["db=postgres"],
         "prepare": f"{VENV} -r requirements.txt"},
    ),
    "words of a shell": (
        {"requirements.txt": "gunicorn", "Procfile": "web: cd src && MODE=1 gunicorn app"},
        {"command": "sh -c 'PATH=$PWD/.venv/bin:$PATH; cd src && MODE=1 gunicorn app'",
         "prepare": f"{VENV} -r requirements.txt"},
    ),
    "shell": (
        {"Procfile": "web: exec ./serve $PORT | tee log"},
        {"command": "sh -c './serve {port} | tee log'"},
    ),
    "a variable": (
        {"Procfile": "web: MODE=1 ./serve $PORT"},
        {"command": "sh -c 'MODE=1 ./serve {port}'"},
    ),
    "a redirection": (
        {"Procfile": "web: ./serve $PORT > log"},
        {"command": "sh -c 'exec ./serve {port} > log'"},
    ),
    "dockerfile": ({"Dockerfile": "FROM scratch"}, {}),
    "damaged": ({"package.json": '{"scripts": 7', "pyproject.toml": "[", "go.mod": "\0"}, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_what_is_found_stands_in_the_file_and_a_duel_understands_it(
    name: str, here: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, parameters = FOUND[name]
    tools = tmp_path_factory.mktemp("tools")
    for tool in ("uv", "npm", "node", "go", "python3"):
        (tools / tool).symlink_to("/bin/true")
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    for place, text in there.items():
        (here / place).parent.mkdir(parents=True, exist_ok=True)
        (here / place).write_text(text)
    new_project()
    values, _ = read_parameters(here / FILE, "test")
    assert {key: value for key, value in values.items() if key != "folder"} == parameters
    revisions = [f"{each}=tree:{here}" for each in ("old", "new")]
    options = {"variants": revisions} | ({} if "command" in parameters else {"command": "cat"})
    assert given("custom_service", "", options, "")[0]["variants"] == revisions


def test_every_command_of_a_line_runs_with_the_projects_own_programs(here: Path) -> None:
    programs = here / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "gunicorn"):
        (programs / name).write_text(f'#!/bin/sh\necho {name} "$@"\n')
        (programs / name).chmod(0o755)
    (here / "requirements.txt").write_text("gunicorn\n")
    (here / "Procfile").write_text(
        "web: python manage.py migrate && gunicorn app --bind 0.0.0.0:$PORT\n"
    )
    new_project()
    command = str(read_parameters(here / FILE, "test")[0]["command"])
    words = shlex.split(command.replace("{host}", "127.0.0.1").replace("{port}", "8000"))
    done = subprocess.run(words, cwd=here, capture_output=True, text=True, check=True)
    assert done.stdout == "python manage.py migrate\ngunicorn app --bind 127.0.0.1:8000\n"


def test_variables_that_a_service_reads_are_named_and_none_is_set(here: Path) -> None:
    (here / "settings.py").write_text(
        "KEY, URL = os.environ['KEY'], os.environ[\"BROKER_URL\"]\n"
        "os.environ['DJANGO_SETTINGS_MODULE'] = 'site'\nos.environ['SCHLÜSSEL']\n"
        "at = os.environ['PORT'], os.environ['PATH'], os.environ['HOME']\n"
    )
    (here / ".env.example").write_text("BROKER_URL=redis://localhost:6379/0  # of mine\n")
    new_project()
    text = (here / FILE).read_text()
    of_env = text.partition("[service.env]\n")[2].partition("\n[")[0].strip().splitlines()
    assert of_env[1:] == [
        f'# {name} = ""  # settings.py reads it' for name in ("KEY", "BROKER_URL")
    ]
    assert "env" not in read_parameters(here / FILE, "test")[0]


def test_every_example_of_the_file_is_a_key_that_a_duel_knows(here: Path) -> None:
    new_project()
    text = (here / FILE).read_text()
    (here / ".env.test").touch()
    (here / "perflab_experiments").mkdir()
    lines = [re.sub(r"^# (?=\w+ = )", "", line) for line in text.splitlines()]
    assert lines != text.splitlines()
    (here / FILE).write_text("\n".join(lines))
    revisions = [f"{each}=tree:{here}" for each in ("old", "new")]
    values, _, _ = given("custom_service", "", {"variants": revisions}, "")
    assert {"command", "prepare", "setup", "health", "env_file", "needs", "env", "users"} <= {
        *values
    }


@pytest.mark.parametrize(
    ("name", "example"),
    [
        ("go", "bin/service -migrate"),
        ("express", "npm run migrate"),
        ("flask", ".venv/bin/python migrate.py"),
    ],
)
def test_the_example_of_a_setup_is_of_the_projects_language(
    name: str, example: str, here: Path
) -> None:
    for place, text in FOUND[name][0].items():
        (here / place).parent.mkdir(parents=True, exist_ok=True)
        (here / place).write_text(text)
    new_project()
    assert f'\n# setup = "{example}"  #' in (here / FILE).read_text()


def test_the_command_says_what_it_found_and_what_to_type_next(
    here: Path, perflab: Tell, tmp_path: Path
) -> None:
    (here / "app.py").write_text(FLASK)
    (here / "requirements.txt").write_text("flask\npsycopg2\n")
    output, _ = perflab(tmp_path / "runs", "new", "project")
    assert "  db = postgres   (requirements.txt: psycopg2)" in output
    assert "not found: setup, health" in output
    assert "perflab duel --against main" in output


def test_a_gitignore_keeps_its_bytes(here: Path) -> None:
    before = "# D\xe9pendances\r\nnode_modules\r\n".encode("latin-1")
    (here / ".gitignore").write_bytes(before)
    new_project()
    assert (here / ".gitignore").read_bytes().startswith(before + b"/perflab-runs/\n")


def test_lines_of_gitignore_are_added_once_and_others_stay(here: Path) -> None:
    (here / ".gitignore").write_text("*.pyc\nperflab-runs/")
    new_project()
    assert (
        here / ".gitignore"
    ).read_text() == "*.pyc\nperflab-runs/\n/figures/\n/perflab-sweeps/\n"


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
