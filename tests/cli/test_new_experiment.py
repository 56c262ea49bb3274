"""`perflab new experiment`: what it lays out runs at once, and what is wrong writes nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from perflab.cli.scaffold import lay_out
from perflab.errors import ParameterError
from perflab.paths import project_root


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder of a user's own, that services may pass through."""
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PERFLAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("PERFLAB_FIGURES", str(tmp_path / "figures"))
    return tmp_path


def written(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*")}


@pytest.mark.slow
def test_the_files_of_an_experiment_are_clean_by_the_rules_of_the_lab(here: Path) -> None:
    home, files = lay_out("cart_speed")
    assert files[0] == here / "perflab.toml"
    assert all(file.is_file() for file in files)
    assert not re.search(r"@[A-Z_]+@", "".join(file.read_text() for file in files))
    settings = str(project_root() / "pyproject.toml")
    config = ["--config", settings, "--no-cache"]
    imports = ["--config", 'lint.isort.known-third-party=["perflab"]']
    server = home / "services" / home.name / "server.py"
    for words in (
        ["ruff", "check", *config, *imports, str(home)],
        ["ruff", "format", "--check", *config, str(home)],
        ["mypy", "--strict", "--config-file", settings, str(server)],
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
        ("responses", "perflab.systems itself"),
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
