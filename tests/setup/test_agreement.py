"""pyproject.toml, requirements.lock and environment.yml name the same set."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from itertools import chain

import pytest
import yaml
from packaging.requirements import Requirement

from perflab.paths import project_root

ROOT = project_root()
# The part of conda's match specification that the file uses: a name and version constraints.
SPEC = re.compile(r"^[a-z0-9][a-z0-9._-]*( (=|[<>]=?)[0-9][0-9a-z.]*(,[<>]=?[0-9.]+)*)?$")
CONDA_NAMES = {
    "brotli-python": "brotli",
    "docker-py": "docker",
    "matplotlib-base": "matplotlib",
    "msgpack-python": "msgpack",
}


def requirements() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [
        Requirement(text)
        for text in [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    ]


def locked() -> dict[str, str]:
    text = (ROOT / "requirements.lock").read_text()
    return dict(reversed(re.findall(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", text, re.MULTILINE)))


def environment() -> dict[str, str]:
    listed = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    specs = [item for item in listed if isinstance(item, str)]
    for spec in specs:
        assert SPEC.match(spec), spec
    found = {}
    for spec in specs:
        name, _, version = spec.partition(" =")
        found[CONDA_NAMES.get(name, name)] = version
    for text in next(item for item in listed if isinstance(item, dict))["pip"]:
        if text != "--editable .":
            pinned = Requirement(text)
            found[pinned.name] = str(pinned.specifier).removeprefix("==")
    return found


@pytest.mark.parametrize("requirement", requirements(), ids=lambda item: str(item.name))
def test_every_direct_dependency_is_in_all_three_with_one_version(requirement: Requirement) -> None:
    pinned = locked()[requirement.name]
    assert requirement.specifier.contains(pinned)
    assert environment()[requirement.name] == pinned


def test_the_conda_file_names_nothing_else() -> None:
    extra = {"pip"} | {name for name in environment() if name.startswith("python ")}
    assert set(environment()) - extra == {item.name for item in requirements()}


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
