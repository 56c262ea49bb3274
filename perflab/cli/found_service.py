"""Finds how a folder's service is started and what it needs, for the project's ``perflab.toml``.

What is found is a beginning that the user looks through: only names and files decide, nothing is
imported or executed.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

SOURCES = (".py", ".js", ".mjs", ".cjs", ".ts", ".go")
SAMPLES = (".env.example", ".env.sample")
NOT_OF_THE_SERVICE = re.compile(r"\..*|tests?|node_modules|venv|vendor|dist|build|site-packages")
DEEPEST, MOST_SOURCES, MOST_BYTES = 4, 400, 200_000
# Each way to install packages, by the file that tells it.
PYTHON = {
    "uv.lock": "uv sync --frozen",
    "poetry.lock": "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install",
    "requirements.txt": "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt",
    "pyproject.toml": "python3 -m venv .venv && .venv/bin/pip install .",
}
NODE = {
    "package-lock.json": "npm ci",
    "yarn.lock": "yarn install --frozen-lockfile",
    "pnpm-lock.yaml": "pnpm install --frozen-lockfile",
    "package.json": "npm install",
}
GO_PROGRAM = "bin/service"
GO_BUILD = f"go build -o {GO_PROGRAM}"
# A program without its folder, and no word of a shell.
PROGRAM = re.compile(r"(?!(?:cd|export|set|source|test)$)\w[\w.-]*")
# Programs that come with a Python project's packages.
OF_PYTHON = re.compile(r"python3?|gunicorn|uvicorn|hypercorn|daphne|flask|fastapi|waitress-serve")
APP = re.compile(r"^(\w+)(?:\s*:[^=\n]+)?\s*=\s*(?:\w+\.)?(?:FastAPI|Starlette|Flask)\(", re.M)
PORT = re.compile(r"\$\{PORT(?::-?\d+)?\}|\$PORT\b")
NEEDS_A_SHELL = re.compile(r"[$&|;<>`*(]")
# A line that is more than one program with its arguments.
COMPOUND = re.compile(r"[;&|]|^(?:(?:cd|export|set|source|test)\s|\w+=)")
HEALTH = re.compile(r"[\"'](?:GET )?/?((?:api/|_)?(?:healthz?|livez|readyz|ping))/?[\"']")
# Roles, the store of each, and packages that speak to it (the last part of a Go module's name), or
# extras of packages that bring one.
STORES = {
    "db": (
        "postgres",
        r"psycopg|psycopg2|psycopg2-binary|asyncpg|pg8000|pg|postgres(?:ql)?|pgx|pq",
    ),
    "cache": ("redis", r"redis|ioredis|valkey|aioredis|go-redis|hiredis"),
}
VARIABLE = re.compile(
    r"\b(DATABASE|POSTGRES(?:QL)?|PG|DB|REDIS|VALKEY|CACHE)_?"
    r"(URL|URI|DSN|HOST|PORT|USER|PASSWORD|DB|NAME|DATABASE)\b"
)
# A variable that a Python service reads, and may fail without; those that every process has, and
# those that the lab sets, are none.
READ = re.compile(
    r"os\.environ\[[\"']((?!(?:PORT|HOST|PATH|HOME|USER|LANG|TZ|TMPDIR)[\"'])[A-Za-z_][A-Za-z0-9_]*)"
    r"[\"']\](?!\s*=[^=])"
)
FIELDS = {"uri": "url", "dsn": "url", "db": "name", "database": "name"}
# What SQLAlchemy must be told of a driver that is not its default.
DRIVERS = ("asyncpg", "psycopg")


@dataclass
class Found:
    """Keys of the tables of a service, each with its value and where it was seen.

    ``read`` are variables that may be needed, each with the file that reads it.
    """

    service: dict[str, tuple[str, str]] = field(default_factory=dict)
    needs: dict[str, tuple[str, str]] = field(default_factory=dict)
    env: dict[str, tuple[str, str]] = field(default_factory=dict)
    read: dict[str, str] = field(default_factory=dict)


def found_in(folder: Path) -> Found:
    """Return what a folder tells of its service."""
    found, packages, sources = Found(), _packages(folder), _sources(folder)
    is_python = not PYTHON.keys().isdisjoint(packages.values())
    _start(folder, found, packages if is_python else {}, sources)
    made = found.service.get("prepare", ("",))[0]
    for role, (kind, names) in STORES.items():
        for package, file in packages.items():
            if re.fullmatch(names, package.rpartition("[")[2].removesuffix("]")):
                found.needs.setdefault(role, (kind, f"{file}: {package}"))
    driver = next((each for each in DRIVERS if {each, "sqlalchemy"} <= packages.keys()), "")
    for name, text in sources.items():
        for match in VARIABLE.finditer(text):
            role = "cache" if match[1] in ("REDIS", "VALKEY", "CACHE") else "db"
            if role in found.needs:
                told = match[2].lower()
                value = f"{{{role}.{FIELDS.get(told, told)}}}"
                if driver and value == "{db.url}":
                    address = "{db.user}:{db.password}@{db.host}:{db.port}/{db.name}"
                    value = f"postgresql+{driver}://{address}"
                elif value == "{db.url}" and packages.get("pq") == "go.mod":
                    # This driver asks for TLS unless it is told not to.
                    value += "?sslmode=disable"
                found.env.setdefault(match[0], (value, f"{name} reads it"))
        if healthy := HEALTH.search(text):
            found.service.setdefault("health", (f"/{healthy[1]}", name))
    for name, text in sources.items():
        found.read |= dict.fromkeys(READ.findall(text), name) | found.read
    if {"db", "command"} <= {*found.needs, *found.service} and (setup := _setup(folder, made)):
        found.service["setup"] = setup
    return found


def _start(
    folder: Path, found: Found, packages: Mapping[str, str], sources: Mapping[str, str]
) -> None:
    """Note how packages are installed, and the command that starts the service.

    ``packages`` are those of a Python project.
    """
    service, is_python = found.service, bool(packages)
    node = _json(folder / "package.json")
    scripts = _table(node, "scripts")
    if is_python:
        service["prepare"] = _installed(folder, PYTHON)
    elif node:
        words, file = _installed(folder, NODE)
        built = " && npm run build" * ("build" in scripts)
        service["prepare"] = (words + built, file)
    elif (folder / "go.mod").is_file() and (place := _go_main(sources)):
        service["prepare"] = (f"{GO_BUILD} {place}", "go.mod")
        service["command"] = (GO_PROGRAM, "go.mod")
    start = str(scripts.get("start", ""))
    made = service.get("prepare", ("",))[0]
    if words := _procfile(folder).get("web", ""):
        service["command"] = (_as_command(words, made), "Procfile: web")
    elif is_python and (told := _python_command(folder, packages, sources)):
        service["command"] = told
    elif not is_python and start:
        # npm would stand between the lab and the service.
        words = _as_command(start, made) if start.startswith("node ") else "npm start"
        service["command"] = (words, "package.json: start")
    if "command" not in service:
        # The Dockerfile, if there is one, installs what it starts.
        service.pop("prepare", None)


def _installed(folder: Path, ways: Mapping[str, str]) -> tuple[str, str]:
    file = next(file for file in ways if (folder / file).is_file())
    return ways[file], file


def _as_command(line: str, prepare: str) -> str:
    """Return a line that a shell would read as a command of ``perflab.toml``.

    A program that is not here is the one that ``prepare`` makes.
    """
    line = PORT.sub("{port}", line.removeprefix("exec ")).replace("0.0.0.0", "{host}")
    is_one = not COMPOUND.search(line)
    first, _, rest = line.partition(" ")
    is_here = not PROGRAM.fullmatch(first) or shutil.which(first) is not None
    if prepare.startswith(GO_BUILD) and (first.startswith("bin/") or not is_here):
        line = f"{GO_PROGRAM} {rest}".rstrip()
    elif prepare in PYTHON.values() and not is_one:
        line = f"PATH=$PWD/.venv/bin:$PATH; {line}"
    elif prepare in PYTHON.values() and (OF_PYTHON.fullmatch(first) or not is_here):
        line = f".venv/bin/{first.replace('python3', 'python')} {rest}".rstrip()
    if is_one and not NEEDS_A_SHELL.search(line):
        return line
    # With exec the shell gives way to the program; what stands behind it would never start.
    return shlex.join(["sh", "-c", f"exec {line}" if is_one else line])


def _python_command(
    folder: Path, packages: Mapping[str, str], sources: Mapping[str, str]
) -> tuple[str, str] | None:
    served = ".venv/bin/gunicorn {} --bind {{host}}:{{port}}"
    if "django" in packages and (folder / "manage.py").is_file():
        modules = [name for name in sources if name.endswith("/wsgi.py")]
        if "gunicorn" in packages and modules:
            return served.format(modules[0][:-3].replace("/", ".")), modules[0]
        return ".venv/bin/python manage.py runserver --noreload {host}:{port}", "manage.py"
    for name, text in sources.items():
        if name.endswith(".py") and (match := APP.search(text)):
            module = name.removeprefix("src/").removesuffix(".py").removesuffix("/__init__")
            app = f"{module.replace('/', '.')}:{match[1]}"
            in_src = name.startswith("src/")
            if "Flask(" not in match[0]:
                words = f".venv/bin/uvicorn {app} --port {{port}}{' --app-dir src' * in_src}"
            elif "gunicorn" in packages:
                words = served.format(app) + " --chdir src" * in_src
            else:
                words = f".venv/bin/flask --app {app} run --port {{port}}"
            return words, name
    return None


def _setup(folder: Path, prepare: str) -> tuple[str, str] | None:
    """Return the command that makes the tables, and where it was seen."""
    if release := _procfile(folder).get("release", ""):
        return _as_command(release, prepare), "Procfile: release"
    ways = {
        "alembic.ini": ".venv/bin/alembic upgrade head",
        "manage.py": ".venv/bin/python manage.py migrate",
        "prisma/schema.prisma": "npx prisma migrate deploy",
    }
    return next(((ways[file], file) for file in ways if (folder / file).is_file()), None)


def _procfile(folder: Path) -> dict[str, str]:
    lines = _text(folder / "Procfile").splitlines()
    return {name.strip(): rest.strip() for name, _, rest in (line.partition(":") for line in lines)}


def _go_main(sources: Mapping[str, str]) -> str:
    """Return the package to build: that of the folder itself, else the first one below it."""
    mains = [name for name, text in sources.items() if re.search(r"^package main\b", text, re.M)]
    folders = sorted({Path(name).parent for name in mains if name.endswith(".go")})
    return "" if not folders else "." if folders[0] == Path() else f"./{folders[0]}"


def _packages(folder: Path) -> dict[str, str]:
    """Return the packages that a project names, and their extras, with the file of each."""
    python: dict[str, Any] = {}
    with suppress(tomllib.TOMLDecodeError):
        python = tomllib.loads(_text(folder / "pyproject.toml"))
    node = _table(_json(folder / "package.json"), "dependencies")
    modules = re.findall(r"^(?:require)?\s*([\w.-]+/\S+) v", _text(folder / "go.mod"), re.M)
    named = {
        "pyproject.toml": [
            *_table(python, "project").get("dependencies", ()),
            *_table(_table(python, "tool"), "poetry").get("dependencies", ()),
        ],
        "requirements.txt": _text(folder / "requirements.txt").splitlines(),
        "package.json": [*node],
        "go.mod": [re.sub(r"/v\d+$", "", each).rpartition("/")[2] for each in modules],
    }
    packages: dict[str, str] = {}
    for file, lines in named.items():
        for line in lines:
            if match := re.match(r"([A-Za-z0-9][\w.-]*)\s*(?:\[([^\]]*)\])?", line.lower()):
                extras = [f"{match[1]}[{each}]" for each in re.findall(r"[\w.-]+", match[2] or "")]
                for name in (match[1], *extras):
                    packages.setdefault(name, file)
    return packages


def _sources(folder: Path) -> dict[str, str]:
    """Return the texts of a folder's sources by their paths, those near the top first."""
    names = islice(_files(folder, 0), MOST_SOURCES)
    near = sorted(names, key=lambda path: (len(path.parts), path))
    return {path.relative_to(folder).as_posix(): _text(path) for path in near}


def _files(folder: Path, depth: int) -> Iterator[Path]:
    for path in sorted(folder.iterdir(), key=Path.is_dir):
        is_folder = path.is_dir() and not path.is_symlink()
        if is_folder and depth < DEEPEST and not NOT_OF_THE_SERVICE.fullmatch(path.name):
            with suppress(OSError):
                yield from _files(path, depth + 1)
        elif (path.suffix in SOURCES or path.name in SAMPLES) and not path.match("*test*"):
            yield path


def _table(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = content.get(name)
    return value if isinstance(value, dict) else {}


def _json(file: Path) -> dict[str, Any]:
    with suppress(ValueError):
        content = json.loads(_text(file) or "{}")
        return content if isinstance(content, dict) else {}
    return {}


def _text(file: Path) -> str:
    with suppress(OSError), file.open(encoding="utf-8", errors="replace") as stream:
        return stream.read(MOST_BYTES)
    return ""
