"""Makes a new experiment in the user's folder from a template: all of its files, or none."""

from __future__ import annotations

import keyword
import os
import re
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from typing import Any, cast

from perflab import paths, systems
from perflab.errors import ParameterError
from perflab.host.files import whole_folder
from perflab.paths import notebook_file
from perflab.stacks.spec import service_names

ALLOWED = re.compile(r"[a-z][a-z0-9_]{0,39}")
# The suffix keeps tools from taking templates for modules of the package.
SUFFIX, NAME, FILLED = ".in", "NAME", "@NAME@"
# How a cell begins in the template of a notebook: its kind, and its id.
CELL = re.compile(r"^# %% (\[markdown\] )?([a-z-]+)\n", re.M)


def lay_out(name: str) -> tuple[Path, list[Path]]:
    """Write a system folder with an experiment, a notebook, an example of a service and a test.

    Return the folder and all files that are new.

    It goes to the first folder that ``perflab.toml`` names. Otherwise it goes to
    ``perflab_experiments`` here, and a new ``perflab.toml`` names that folder. System, service and
    stack have the experiment's name. ParameterError lists every problem; then nothing was written.
    """
    problems = problems_with(name)
    folders = paths.folders_named()
    home = (folders[0] if folders else Path.cwd() / paths.DEFAULT) / name
    if not problems and os.path.lexists(home):
        problems.append(f"{home} exists; choose another name, or move it away")
    if problems:
        raise ParameterError("perflab new experiment", problems)
    files = dict(_files(resources.files(__package__) / "templates", PurePosixPath(), name))
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        with whole_folder(home) as unfinished:
            for place, text in files.items():
                file = unfinished / place
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
        settings = [] if folders else [Path.cwd() / paths.NAME]
        for file in settings:
            file.write_text(paths.text(), encoding="utf-8")
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
        # The module is imported as perflab.systems.<name> and would hide that attribute.
        "the package perflab.systems itself": vars(systems),
    }
    taken = [kind for kind, known in names.items() if name in known]
    taken += ["a notebook"] * notebook_file(name).exists()
    return [f"'{name}' is taken by {' and '.join(taken)}; choose another name"] if taken else []


def _files(
    folder: Traversable, place: PurePosixPath, name: str
) -> Iterator[tuple[PurePosixPath, str]]:
    """Yield path and text of every file of the template, with the name filled in."""
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        at = place / item.name.replace(NAME, name).removesuffix(SUFFIX)
        if item.is_dir():
            yield from _files(item, at, name)
        elif item.name.endswith(SUFFIX):
            text = item.read_text(encoding="utf-8").replace(FILLED, name)
            yield at, _notebook(text) if at.suffix == ".ipynb" else text


def _notebook(text: str) -> str:
    """Return a notebook as JSON; its cells begin with ``# %% id`` or ``# %% [markdown] id``."""
    import nbformat

    # nbformat types only a part of its functions.
    v4, writes = cast(Any, nbformat.v4), cast(Any, nbformat.writes)
    _, *parts = CELL.split(text)
    cells = []
    for words, name, source in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        make = v4.new_markdown_cell if words else v4.new_code_cell
        tags = {"tags": ["parameters"]} if name == "parameters" else {}
        cells.append(make(source.rstrip("\n"), id=name, metadata=tags))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return str(writes(v4.new_notebook(cells=cells, metadata=about))) + "\n"
