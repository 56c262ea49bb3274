"""The fingerprint of the sources changes with every byte of them, and with nothing else."""

from __future__ import annotations

import os
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

from perflab.host import facts
from perflab.paths import FOREIGN

SOURCES = {
    "perflab": "perflab/figures/plot.py",
    "services": "services/echo/server.py",
    "requirements.lock": "requirements.lock",
    "services.lock": "services.lock",
    f"{FOREIGN} 1": "mine/oracle/service.py",
    f"{FOREIGN} 2": "yours/table.csv",
}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for path in (*SOURCES.values(), "notebooks/a.ipynb"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x = 1\n")
    monkeypatch.setenv("PERFLAB_ROOT", str(tmp_path))
    monkeypatch.setenv(FOREIGN, f"{tmp_path / 'mine'}:{tmp_path / 'yours'}")
    return tmp_path


def fingerprint() -> str:
    return str(facts.code()["fingerprint"])


@pytest.mark.parametrize("place", SOURCES)
@pytest.mark.promise
def test_a_change_of_any_source_is_another_fingerprint_and_says_where(
    checkout: Path, place: str
) -> None:
    fingerprints, before = [fingerprint()], facts.sources()
    file = checkout / SOURCES[place]
    file.write_text("x = 2\n")
    fingerprints.append(fingerprint())
    after = facts.sources()
    assert {name for name in before if before[name] != after[name]} == {place}
    file.unlink()
    fingerprints.append(fingerprint())
    assert len(set(fingerprints)) == 3


def test_a_moved_folder_notebooks_and_caches_do_not_change_the_fingerprint(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = fingerprint()
    (checkout / "mine").rename(checkout / "moved")
    monkeypatch.setenv(FOREIGN, f"{checkout / 'moved'}:{checkout / 'yours'}")
    (checkout / "notebooks" / "a.ipynb").write_text("{}")
    for cache in ("perflab/__pycache__", "moved/.git"):
        (checkout / cache).mkdir()
        (checkout / cache / "code.pyc").write_bytes(b"1")
    assert fingerprint() == before


def test_every_installed_package_is_recorded_with_its_version() -> None:
    packages = facts.environment()["packages"]
    assert packages["numpy"] == metadata.version("numpy")
    assert packages["pydantic-core"] == metadata.version("pydantic_core")
    assert len(packages) > 50


def test_a_folder_of_a_package_without_a_name_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone-1.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    packages = facts.installed.__wrapped__()
    assert packages["numpy"] == metadata.version("numpy")
    assert "gone" not in packages


@pytest.mark.promise
def test_a_wheel_in_somebodys_repository_tells_its_own_commit_and_not_theirs(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wheel has no repository; where it is installed there may be another one."""
    author = {
        f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    for words in (
        ["init", "--quiet"],
        ["commit", "--quiet", "--allow-empty", "--message", "theirs"],
    ):
        subprocess.run(["git", *words], cwd=checkout, check=True, env={**os.environ, **author})
    monkeypatch.setattr(facts, "is_checkout", lambda: False)
    assert facts.code()["commit"] == "no commit"
    (checkout / "COMMIT").write_text("0123abcd dirty")
    code = facts.code()
    assert (code["commit"], code["dirty"]) == ("0123abcd", True)


def test_where_git_does_not_answer_the_code_counts_as_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(facts, "is_checkout", lambda: True)
    monkeypatch.setattr(facts, "_git", lambda *_: None)
    code = facts.code()
    assert (code["commit"], code["dirty"]) == ("no commit", True)
