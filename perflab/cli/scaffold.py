"""Makes what a user begins with: a project, a copy of a notebook, an experiment.

All of its files are written, or none.
"""

from __future__ import annotations

import json
import keyword
import os
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from typing import Any

from perflab import systems
from perflab.cli.found_service import Found, found_in
from perflab.cli.varied_service import varied
from perflab.errors import ParameterError
from perflab.host.files import replace_file, whole_folder
from perflab.parameters import unknown
from perflab.paths import notebook_file, notebooks_dir
from perflab.project import (
    DUELS,
    EXPERIMENTS,
    FILE,
    IGNORED,
    NOTEBOOK,
    OF_THE_NOTEBOOK,
    RESULTS,
    project,
    project_file,
)
from perflab.stacks.spec import service_names

ALLOWED = re.compile(r"[a-z][a-z0-9_]{0,39}")
# The suffix keeps tools from taking templates for modules of the package.
SUFFIX, NAME, FILLED, PACKAGE = ".in", "NAME", "@NAME@", "@HOME@"
# How a cell begins in the template of a notebook: its kind, and its id.
CELL = re.compile(r"^# %% (\[markdown\] )?([a-z-]+)\n", re.M)
OF_CODE: Mapping[str, Any] = {"cell_type": "code", "execution_count": None, "outputs": []}
# Keys of the project's file: an example of each, and what it is for.
SERVICE_KEYS = {
    "command": (
        "python3 app.py --port {port}",
        "starts the service; without it the Dockerfile does",
    ),
    "prepare": (
        "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt",
        "once per revision",
    ),
    "setup": (".venv/bin/python migrate.py", "fills the stores, once per run"),
    "health": ("/health", "answers 200 when the service is ready"),
    "env_file": (".env.test", "lines NAME=VALUE, shown nowhere"),
}
# Another example of setup, by the program that prepares the service.
SETUPS = {"go": "bin/service -migrate", **dict.fromkeys(("npm", "yarn", "pnpm"), "npm run migrate")}
NEEDS_KEYS = {
    "db": ("postgres", "PostgreSQL of its own, told by {db.url}"),
    "cache": ("redis", "the same of Redis: {cache.url}"),
}
ENV_KEYS = {"MODE": ("test", "variables of the service; no others reach it")}
LOAD = """\
[load]
# path = "/items?page={random:1-100}"  # what is requested; or several [[load.requests]]
# users = 8  # each waits for its answer; 4
"""


def new_project() -> tuple[list[Path], Found]:
    """Make the working folder a project: ``perflab.toml``, a notebook, lines of ``.gitignore``.

    Return the files that were written, and what they tell of the service that was found here.
    ParameterError lists every problem; then none was written.
    """
    here = Path.cwd()
    settings, notebook, ignored = here / FILE, here / NOTEBOOK, here / IGNORED
    within = project_file()
    problems = [f"{within} makes this folder part of a project already"] if within else []
    problems += [f"{file} exists; move it away" for file in (settings, notebook) if file.exists()]
    if problems:
        raise ParameterError("perflab new project", problems)
    found = found_in(here)
    content = {
        notebook: _of_the_project(notebook_file(DUELS).read_text(encoding="utf-8")).encode(),
        ignored: _ignoring(ignored.read_bytes() if ignored.exists() else b""),
        settings: _settings(found).encode(),
    }
    for file, text in content.items():
        replace_file(file, text)
    return list(content), found


def _ignoring(before: bytes) -> bytes:
    """Return a ``.gitignore`` with the folders of results; what was there stays as it was."""
    lines = {line.strip() for line in before.splitlines()}
    # Without the first slash, folders of these names would be ignored anywhere below.
    added = [f"/{folder}/".encode() for folder in RESULTS.values()]
    missing = [line for line in added if not {line, line[1:]} & lines]
    joint = b"\n" if before and not before.endswith(b"\n") else b""
    return before + joint + b"".join(line + b"\n" for line in missing)


def _settings(found: Found) -> str:
    """Return the text of ``perflab.toml``; what was not found stands there as an example."""
    lines = [
        "# A project of perflab. What is commented out has this value, or is an example; folders",
        "# are relative to this file. 'perflab experiments custom_service' lists all keys.",
        "[results]",
        *(f'# {name} = "{folder}"' for name, folder in RESULTS.items()),
        "\n[experiments]",
        f'# folders = ["{EXPERIMENTS}"]',
        "\n# How the service is started and what it needs, for 'perflab duel --against main'.",
    ]
    example, purpose = SERVICE_KEYS["setup"]
    prepared_by = found.service.get("prepare", ("",))[0].partition(" ")[0]
    service_keys = {**SERVICE_KEYS, "setup": (SETUPS.get(prepared_by, example), purpose)}
    read = {name: ("", f"{file} reads it") for name, file in found.read.items()}
    for table, known, there in (
        ("service", service_keys, found.service),
        ("service.needs", NEEDS_KEYS, found.needs),
        ("service.env", {**ENV_KEYS, **read}, found.env),
    ):
        lines.append(f"[{table}]")
        entries = {**{name: ("# ", *entry) for name, entry in known.items()},
                   **{name: ("", *entry) for name, entry in there.items()}}  # fmt: skip
        lines += [
            f"{mark}{name} = {json.dumps(value, ensure_ascii=False)}  # {' '.join(why.split())}"
            for name, (mark, value, why) in entries.items()
        ]
        lines.append("")
    return "\n".join([*lines, LOAD])


def _of_the_project(notebook: str) -> str:
    """Return the notebook of duels with the parameters of a project."""
    content = json.loads(notebook)
    cells = content["cells"]
    (cell,) = (each for each in cells if "parameters" in each["metadata"].get("tags", ()))
    source = "".join(cell["source"])
    for name, value in OF_THE_NOTEBOOK.items():
        # A value ends where the next parameter or a comment begins.
        source = re.sub(
            rf"^({name}: \w+) = (\[.*?^\]|\S+)",
            rf"\1 = {json.dumps(value)}",
            source,
            flags=re.M | re.S,
        )
    cell["source"] = source.splitlines(keepends=True)
    return _as_file(content)


def _as_file(notebook: Mapping[str, Any]) -> str:
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def copy_notebook(name: str) -> Path:
    """Copy a notebook of the lab into the working folder, and return the copy.

    ParameterError where the lab has none of that name, or the file exists.
    """
    known = sorted(path.stem for path in notebooks_dir().glob("*.ipynb"))
    target = Path.cwd() / f"{name}.ipynb"
    problems = unknown("notebook", [name], known)
    if target.exists():
        problems.append(f"{target} exists; move it away")
    if problems:
        raise ParameterError("perflab new notebook", problems)
    target.write_bytes(notebook_file(name).read_bytes())
    return target


def lay_out(name: str) -> tuple[Path, list[Path]]:
    """Write a system folder with an experiment, a notebook, a service and a test.

    Return the folder and all files that are new. The service is that of the project's file, where
    that has a command, and else an example.

    It goes to the first folder of experiments of the project, else to ``perflab_experiments``; a
    folder that is in no project becomes one. System, service and stack have the experiment's name.
    ParameterError lists every problem; then nothing was written.
    """
    problems = problems_with(name)
    of = project()
    folders = of.experiments if of else ()
    top = of.file.parent if of else Path.cwd()
    home = (folders[0] if folders else top / EXPERIMENTS) / name
    if not problems and os.path.lexists(home):
        problems.append(f"{home} exists; choose another name, or move it away")
    if problems:
        raise ParameterError("perflab new experiment", problems)
    blanks, services = varied(name, home, of.file if of else None)
    blanks = {f"@{blank}@": text for blank, text in blanks.items()}
    filled = {FILLED: name, NAME: name, PACKAGE: home.parent.name, **blanks}
    template = resources.files(__package__) / "templates"
    files = dict(_files(template, PurePosixPath(), filled))
    if services:
        files = {at: text for at, text in files.items() if at.parts[0] != "services"} | services
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        with whole_folder(home) as unfinished:
            for place, text in files.items():
                file = unfinished / place
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
        settings = [] if of else [top / FILE]
        for file in settings:
            file.write_text(_settings(found_in(top)), encoding="utf-8")
    except OSError as error:
        raise ParameterError("perflab new experiment", [f"{home}: {error}"]) from None
    return home, [*settings, *(home / place for place in sorted(files))]


def problems_with(name: str) -> list[str]:
    """Return in sentences why a new experiment cannot have this name."""
    if not ALLOWED.fullmatch(name) or keyword.iskeyword(name) or keyword.issoftkeyword(name):
        return [
            f"'{name}' cannot be the name of a module: use up to 40 lower-case letters, digits and "
            "_, a letter first"
        ]
    names = {
        "an experiment": systems.names(),
        "a system": systems.systems(),
        "a service": service_names(),
        "a stack": systems.ready_stacks(),
    }
    taken = [kind for kind, known in names.items() if name in known]
    taken += ["a notebook"] * notebook_file(name).exists()
    return [f"'{name}' is taken by {' and '.join(taken)}; choose another name"] if taken else []


def _files(
    folder: Traversable, place: PurePosixPath, filled: Mapping[str, str]
) -> Iterator[tuple[PurePosixPath, str]]:
    """Yield path and text of every file of the template, with its blanks filled in."""
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        at = place / _fill(item.name, filled).removesuffix(SUFFIX)
        if item.is_dir():
            yield from _files(item, at, filled)
        elif item.name.endswith(SUFFIX):
            text = _fill(item.read_text(encoding="utf-8"), filled)
            yield at, _notebook(text) if at.suffix == ".ipynb" else text


def _fill(text: str, filled: Mapping[str, str]) -> str:
    for blank, value in filled.items():
        text = text.replace(blank, value)
    return text


def _notebook(text: str) -> str:
    """Return a notebook as JSON; its cells begin with ``# %% id`` or ``# %% [markdown] id``."""
    _, *parts = CELL.split(text)
    cells = []
    for words, name, source in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        of_kind = {"cell_type": "markdown"} if words else OF_CODE
        about = {"id": name, "metadata": {"tags": [name]} if name == "parameters" else {}}
        cells.append({**of_kind, **about, "source": source.rstrip("\n").splitlines(keepends=True)})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about_all = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return _as_file({"cells": cells, "metadata": about_all, "nbformat": 4, "nbformat_minor": 5})
