"""A duel in a clone as CI makes it: detached, of one commit, without a branch."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from perflab.errors import ParameterError
from perflab.paths import project_root, services_dir
from perflab.recordings import Run
from tests.systems.custom.test_variants import COMMAND, checked, git, two_revisions

SERVER = (services_dir() / "duel_example" / "server.py").read_text()
SMALL = ("--blocks", "1", "--duration", "0.3", "--warmup", "0.1", "--users", "1")


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A repository whose main went on after a branch began, with the merge of that branch."""
    files = ("server.py", SERVER), ("README", "as the branch began\n")
    folder = two_revisions(tmp_path / "origin", *files)
    git(folder, "branch", "-m", "main")
    git(folder, "checkout", "--quiet", "-b", "topic")
    (folder / "server.py").write_text(SERVER.replace("default=1000", "default=2000"))
    git(folder, "commit", "--quiet", "--all", "-m", "topic")
    git(folder, "checkout", "--quiet", "main")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "meanwhile")
    git(folder, "checkout", "--quiet", "--detach")
    git(folder, "merge", "--quiet", "--no-ff", "-m", "merged", "topic")
    git(folder, "update-ref", "refs/pull/1/merge", "HEAD")
    git(folder, "checkout", "--quiet", "topic")
    return folder


@pytest.fixture
def clone(origin: Path, tmp_path: Path) -> Path:
    """What the workflow of a pull request checks out if it asks for nothing else."""
    folder, merged = tmp_path / "clone", "refs/remotes/pull/1/merge"
    git(tmp_path, "init", "--quiet", str(folder))
    git(folder, "remote", "add", "origin", f"file://{origin}")
    fetched = f"+refs/pull/1/merge:{merged}"
    git(folder, "fetch", "--quiet", "--no-tags", "--depth=1", "origin", fetched)
    git(folder, "checkout", "--quiet", "--detach", merged)
    return folder


def compared(revision: str) -> list[str]:
    """Return the commits of a duel in the working folder."""
    parameters = checked(against=revision, command=COMMAND, folder=".")
    return [variant.commit for variant in parameters.parsed_variants]


def told(revision: str) -> str:
    with pytest.raises(ParameterError) as refused:
        compared(revision)
    return str(refused.value)


def fetch(text: str, clone: Path) -> None:
    """Run the command that an error names."""
    command = text.split("run '")[1].split("'")[0]
    subprocess.run(command, shell=True, check=True, capture_output=True, cwd=clone)


@pytest.mark.parametrize("named", ["main", "origin/main", "v2", "base.sha"])
def test_what_a_shallow_clone_lacks_comes_by_the_command_that_the_error_names(
    named: str, origin: Path, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(clone)
    expected = git(origin, "rev-parse", "v2" if named == "v2" else "main")
    revision = expected if named == "base.sha" else named
    fetch(told(revision), clone)
    assert compared(revision) == [expected, git(origin, "rev-parse", "refs/pull/1/merge")]


def test_a_branch_whose_history_is_cut_off_is_deepened_as_well(
    origin: Path, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(clone)
    git(clone, "fetch", "--depth=1", "origin", "+refs/heads/*:refs/remotes/origin/*")
    text = told("main")
    assert "no common commit here; its history was cut off" in text
    fetch(text, clone)
    assert compared("main") == compared("origin/main")
    assert compared("main")[0] == git(origin, "rev-parse", "main")


def test_a_whole_clone_of_one_branch_fetches_the_other(
    origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = ("--single-branch", "--branch", "topic", f"file://{origin}", "alone")
    git(tmp_path, "clone", "--quiet", *alone)
    monkeypatch.chdir(tmp_path / "alone")
    text = told("main")
    assert "--unshallow" not in text
    fetch(text, Path.cwd())
    assert compared("main") == [git(origin, "rev-parse", name) for name in ("v2", "topic")]


@pytest.mark.slow
def test_the_command_of_the_documents_measures_a_clone_whose_history_was_fetched(
    clone: Path, origin: Path
) -> None:
    workflow = (project_root() / "docs" / "how-to" / "duel.md").read_text()
    named = re.findall(r"--against (\S+?)\$\{\{ github.base_ref }}", workflow)
    program = str(Path(sys.executable).with_name("perflab"))
    words = [program, "duel", "--against", f"{named[0]}main", "--command", COMMAND, *SMALL]
    runs = clone.parent / "runs"

    def duel() -> subprocess.CompletedProcess[str]:
        places = {"PERFLAB_RUNS": str(runs), "PERFLAB_FIGURES": str(runs.with_name("figures"))}
        return subprocess.run(
            words, cwd=clone, env={**os.environ, **places}, capture_output=True, text=True
        )

    refused = duel()
    assert (refused.returncode, runs.exists()) == (2, False)
    fetch(refused.stderr, clone)
    done = duel()
    # A busy machine may leave too few valid trials to compare.
    assert done.returncode in (0, 4), done.stdout + done.stderr
    (folder,) = (path for path in runs.iterdir() if (path / "run.json").is_file())
    old, new = Run(folder).record.parameters["variants"]
    assert old.endswith(git(origin, "rev-parse", "main"))
    assert new.endswith(git(origin, "rev-parse", "refs/pull/1/merge"))
    assert sorted(os.listdir(clone)) == [".git", "README", "server.py"]
