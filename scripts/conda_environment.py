"""Write environment.yml from pyproject.toml and requirements.lock (`make lock` calls it)."""

from __future__ import annotations

import re
import sys
import tomllib
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONDA_NAMES = {
    "brotli": "brotli-python",
    "docker": "docker-py",
    "matplotlib": "matplotlib-base",
    "msgpack": "msgpack-python",
}
# Not on conda-forge, or without its Python module, or there by another package, which pip would
# install a second time: taken from the Python package index, as the same pinned versions.
PIP_ONLY = (
    "psycopg2-binary", "pypandoc-binary", "scipy-stubs", "types-docker", "types-seaborn", "typst",
    "uv",
)  # fmt: skip
HEAD = """\
# The set of requirements.lock for conda users. Made by scripts/conda_environment.py.
# It has been parsed strictly, not solved: the development machines reach no conda channel.
name: perflab
channels:
  - conda-forge
  - nodefaults
dependencies:
  - python >=3.11,<3.14
  - pip
"""


def direct_dependencies() -> list[str]:
    """Return the names of all direct dependencies, those of all extras included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    return sorted({re.split(r"[><=!~;\[ ]", text, maxsplit=1)[0] for text in wanted})


def locked_versions() -> dict[str, str]:
    """Return name to version from the lock."""
    pins = re.findall(
        r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE
    )
    # Where newer Pythons get a newer release, the older one serves them all.
    return dict(reversed(pins))


def environment() -> str:
    """Return the text of environment.yml."""
    versions = locked_versions()
    names = direct_dependencies()
    conda = [
        f"  - {CONDA_NAMES.get(name, name)} ={versions[name]}\n"
        for name in names
        if name not in PIP_ONLY
    ]
    pip = [f"      - {name}=={versions[name]}\n" for name in names if name in PIP_ONLY]
    return HEAD + "".join(conda) + "  - pip:\n" + "".join(pip) + "      - --editable .\n"


if __name__ == "__main__":
    (ROOT / "environment.yml").write_text(environment())
    sys.stdout.write("environment.yml written\n")
