"""pyproject.toml, requirements.lock and environment.yml name the same set."""

from __future__ import annotations

import ast
import re
import runpy
import sys
import tomllib
from itertools import chain

import pytest
from packaging.requirements import Requirement

from perflab.paths import project_root

ROOT = project_root()
CONDA = runpy.run_path(str(ROOT / "scripts" / "conda_environment.py"))


def requirements() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [
        Requirement(text)
        for text in [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    ]


@pytest.mark.parametrize("requirement", requirements(), ids=lambda item: str(item.name))
def test_the_locked_version_of_a_direct_dependency_is_one_that_is_asked_for(
    requirement: Requirement,
) -> None:
    assert requirement.specifier.contains(CONDA["locked_versions"]()[requirement.name])


def test_the_conda_file_is_that_of_the_project_and_its_lock() -> None:
    assert (ROOT / "environment.yml").read_text() == CONDA["environment"]()


def test_the_lock_holds_hashes_and_no_address() -> None:
    text = (ROOT / "requirements.lock").read_text()
    assert "://" not in text
    assert "index" not in text
    for block in re.split(r"\n(?=[a-z])", text.strip()):
        assert "--hash=sha256:" in block, block[:60]


# Programs that the lab or its users start; no module of it imports them.
STARTED = {"jupyterlab", "py-spy"}
# Asked for by others; named to keep it below a version.
BOUNDED = {"importlib-metadata"}
MODULES = {"IPython": "ipykernel", "PIL": "pillow", "psycopg2": "psycopg2-binary", "yaml": "pyyaml",
           "markdown_it": "markdown-it-py", "pypandoc": "pypandoc-binary"}  # fmt: skip
# It comes with ipykernel, papermill and distributed, which hand its objects to the lab, and with
# matplotlib and rich.
BROUGHT = {"dask", "jupyter-client", "nbclient", "traitlets", "pydantic-core", "pillow",
           "markdown-it-py"}  # fmt: skip


def imported() -> set[str]:
    """Return the packages that the lab's modules import, by their names in the index."""
    names = set()
    for path in (ROOT / "perflab").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.add(str(node.module).partition(".")[0])
    foreign = names - set(sys.stdlib_module_names) - {"perflab"}
    return {MODULES.get(name, name.replace("_", "-")) for name in foreign}


def test_the_core_needs_few_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert len(project["dependencies"]) <= 20


def test_the_lab_depends_on_what_it_imports_and_on_nothing_of_its_specimens() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = [
        *project["dependencies"],
        *chain(*(extras[name] for name in ("cluster", "documents", "lab", "studies"))),
    ]
    named = {Requirement(text).name for text in asked}
    assert imported() - BROUGHT == named - STARTED - BOUNDED
