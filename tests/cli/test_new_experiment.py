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


def python(*words: str) -> str:
    """Run Python in the working folder, as a separate process; return its output."""
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def written(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*")}


@pytest.mark.slow
def test_it_is_found_agrees_with_its_notebook_and_is_clean(here: Path) -> None:
    new = lay_out("cart_speed")
    assert new.settings == here / "perflab.toml"
    assert all(file.is_file() for file in new.files)
    assert not re.search(r"@[A-Z_]+@", "".join(file.read_text() for file in new.files))
    python(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", str(new.home / "tests"), "-k", "notebook"
    )
    check_style(new.home)


def check_style(home: Path) -> None:
    """The files of an experiment are clean by the rules of the lab."""
    ruff = [sys.executable, "-m", "ruff"]
    config = ["--config", str(project_root() / "pyproject.toml"), "--no-cache"]
    imports = ["--config", 'lint.isort.known-third-party=["perflab"]']
    for words in (["check", *config, *imports], ["format", "--check", *config]):
        done = subprocess.run([*ruff, *words, str(home)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
    server = home / "services" / home.name / "server.py"
    python("-m", "mypy", "--strict", "--config-file", config[1], str(server))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Cart", "cannot be the name of a module"),
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
    second = lay_out("two")
    assert second.settings is None
    assert second.home == here / "perflab_experiments" / "two"
