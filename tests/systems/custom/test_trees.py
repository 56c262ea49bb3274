"""The files of a variant are those of its commit, or of the working tree as it stands."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import psutil
import pytest

from perflab import systems
from perflab.stacks.builds import copy_of
from perflab.stacks.commands import NO_WORK
from perflab.stacks.process_backend import ProcessBackend
from perflab.stacks.spec import ServiceSpec, load_service
from perflab.systems.custom import trees
from tests.systems.custom.test_variants import COMMAND, checked, git, problems, two_revisions


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFLAB_STATE", str(tmp_path / "state"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a branch that began at v1, and whose hooks and attributes would be seen."""
    files = ("server.py", "# one\n"), (".gitattributes", "server.py export-ignore\n")
    folder = two_revisions(tmp_path / "repository", *files)
    git(folder, "branch", "-m", "main")
    git(folder, "checkout", "--quiet", "-b", "topic")
    (folder / "server.py").write_text("# two\n")
    git(folder, "commit", "--quiet", "--all", "-m", "topic")
    git(folder, "checkout", "--quiet", "main")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "meanwhile")
    git(folder, "checkout", "--quiet", "topic")
    hook = folder / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hook-ran\n")
    hook.chmod(0o755)
    return folder


def services(**values: object) -> list[ServiceSpec]:
    parameters = checked(command=COMMAND, **values)
    treatments = systems.experiment("custom_service").treatments(parameters)
    return [load_service(treatment.stack.nodes[0].service) for treatment in treatments]


def prepared(spec: ServiceSpec) -> Path:
    backend = ProcessBackend()
    backend.prepare(spec, NO_WORK)
    return backend.artifacts / spec.process.artifacts


def listed(folder: Path) -> list[str]:
    paths = [*folder.rglob("*")]
    return sorted(f"{path.relative_to(folder)} {path.lstat().st_mtime_ns}" for path in paths)


def test_a_branch_is_held_against_where_it_left_the_other(repository: Path) -> None:
    base, head = git(repository, "rev-parse", "v2"), git(repository, "rev-parse", "topic")
    named = checked(against="main", folder=str(repository), command=COMMAND)
    assert named.variants == (f"old=git:{repository}@{base}", f"new=git:{repository}@{head}")
    assert checked(**named.model_dump()).variants == named.variants
    assert systems.experiment("custom_service").warnings(named) == []


@pytest.mark.promise
def test_a_revision_is_checked_out_whole_and_the_users_repository_is_not_written_to(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = listed(repository)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "of another"))
    _, new = services(against="v2", folder=str(repository), prepare="pwd > where")
    monkeypatch.delenv("GIT_DIR")
    tree = prepared(new)
    assert (tree / "server.py").read_text() == "# two\n", "export-ignore"
    assert git(tree, "describe", "--tags").startswith("v2-1-g")
    assert git(tree, "log", "--format=%s", "-1") == "topic"
    assert (tree / "where").read_text().strip() == str(tree)
    assert not (tmp_path / "hook-ran").exists()
    assert listed(repository) == before


def test_what_was_prepared_is_kept_for_another_path_and_made_anew_for_another_preparation(
    repository: Path, tmp_path: Path
) -> None:
    note = f"echo made >> {tmp_path}/count"
    for path in ("/", "/items"):
        for spec in services(against="main", folder=str(repository), prepare=note, path=path):
            prepared(spec)
    assert (tmp_path / "count").read_text().count("made") == 2
    for spec in services(against="main", folder=str(repository), prepare=f"{note}; true"):
        prepared(spec)
    assert (tmp_path / "count").read_text().count("made") == 4


@pytest.mark.promise
def test_every_duel_begins_with_the_files_as_they_were_made(repository: Path) -> None:
    made = "mkdir made cache && echo 1 > made/kept && ln -s kept made/link && echo x > gone"
    spec, _ = services(against="main", folder=str(repository), prepare=made)
    tree = prepared(spec)
    before = listed(tree)
    (tree / "app.db").write_text("the orders of this duel")
    (tree / "made" / "kept").write_text("2\n")
    (tree / "made" / "link").unlink()
    (tree / "made" / "link").mkdir()
    (tree / "gone").unlink()
    (tree / "cache").rmdir()
    (tree / "cache").symlink_to(repository)
    (tree / "server.py").chmod(0o777)
    assert prepared(spec) == tree
    assert listed(tree) == before
    assert (tree / "made" / "link").read_text() == "1\n"
    assert not (tree / "server.py").stat().st_mode & 0o111
    assert (repository / "server.py").exists(), "no link is followed"


def test_a_tree_without_a_copy_is_made_anew(repository: Path) -> None:
    spec, _ = services(against="main", folder=str(repository), prepare="echo 1 >> made")
    tree = prepared(spec)
    shutil.rmtree(copy_of(tree))
    (tree / "app.db").touch()
    assert prepared(spec) == tree
    assert (tree / "made").read_text() == "1\n"
    assert not (tree / "app.db").exists()


@pytest.mark.promise
def test_what_was_prepared_with_another_value_of_a_variable_is_made_anew(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {"env": ["MODE_OF_TREE"], "prepare": 'echo "$MODE_OF_TREE" > m && date +%N > made'}
    seen = []
    for mode in ("a", "b", "b"):
        monkeypatch.setenv("MODE_OF_TREE", mode)
        spec, _ = services(against="main", folder=str(repository), **values)
        tree = prepared(spec)
        assert (tree / "m").read_text() == f"{mode}\n"
        seen.append((tree / "made").read_text())
    assert seen[0] != seen[1] == seen[2]


def test_a_preparation_compiles_python_into_no_folder_of_the_lab(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    noted = "python3 -c 'import sys; print(sys.pycache_prefix)' > seen"
    spec, _ = services(against="main", folder=str(repository), prepare=noted)
    assert (prepared(spec) / "seen").read_text() == "None\n"


def test_a_preparation_that_failed_is_not_kept(repository: Path, tmp_path: Path) -> None:
    fails_once = f"test -e {tmp_path}/seen || {{ touch {tmp_path}/seen; echo no network; exit 1; }}"
    spec, _ = services(against="main", folder=str(repository), prepare=fails_once)
    with pytest.raises(Exception, match=r"ended with exit status 1(.|\n)*no network"):
        prepared(spec)
    assert (prepared(spec) / ".gitattributes").exists()


@pytest.mark.promise
def test_a_preparation_does_not_get_the_address_of_a_store_from_the_caller(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:hunter2@db.example.com/shop")
    monkeypatch.setenv("INDEX_URL", "https://example.com/simple")
    noted = 'echo "$DATABASE_URL|$INDEX_URL" > seen'
    spec, _ = services(against="main", folder=str(repository), prepare=noted)
    assert (prepared(spec) / "seen").read_text() == "|https://example.com/simple\n"


def test_a_working_tree_is_copied_as_it_stands(repository: Path) -> None:
    (repository / "server.py").write_text("# not committed\n")
    (repository / "new.py").write_text("# new\n")
    (repository / ".gitignore").write_text("*.log\n.gitignore\n")
    (repository / "much.log").write_text("ignored\n")
    (repository / "perflab-runs").mkdir()
    (repository / "perflab-runs" / "run").touch()
    values = {"against": "main", "working_tree": True, "folder": str(repository)}
    parameters = checked(command=COMMAND, **values)
    tree = prepared(services(**values)[1])
    assert (tree / "server.py").read_text() == "# not committed\n"
    assert {path.name for path in tree.iterdir()} == {
        ".git", ".gitattributes", "new.py", "server.py",
    }  # fmt: skip
    assert git(tree, "describe", "--tags", "--dirty").endswith("-dirty")
    assert systems.experiment("custom_service").warnings(parameters) == []
    (repository / "new.py").unlink()
    assert checked(**parameters.model_dump()).variants == parameters.variants, "it is kept"
    assert parameters.variants != checked(command=COMMAND, **values).variants


def test_the_folder_of_a_monorepo_is_where_its_service_starts(repository: Path) -> None:
    app = repository / "app"
    app.mkdir()
    (app / "main.py").touch()
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "app")
    spec = services(variants=["a=git:.@HEAD", "b=tree:."], folder=str(app), prepare="pwd > w")[0]
    tree = prepared(spec)
    assert (tree / "app" / "w").read_text().strip() == str(tree / "app")
    assert (tree / "server.py").exists()


def test_a_copy_that_takes_too_long_leaves_no_process_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees, "TIMEOUT_S", 0.5)
    with pytest.raises(ValueError, match=r"took longer than 0\.5 s"):
        trees.without_repository('sleep 60 &\necho $! > "$1/pid"\nwait\n', tmp_path)
    try:
        state = psutil.Process(int((tmp_path / "pid").read_text())).status()
    except psutil.NoSuchProcess:
        return
    assert state == psutil.STATUS_ZOMBIE


def test_nothing_to_compare_is_said_before_anything_starts(
    repository: Path, tmp_path: Path
) -> None:
    def refused(folder: Path = repository, **values: object) -> str:
        return problems(folder=str(folder), command=COMMAND, **values)

    assert "HEAD" in refused(against="topic")
    assert "(--working-tree)" in refused(against="topic")
    assert "has no revision 'mian' (did you mean 'main'?)" in refused(against="mian")
    assert "not both" in refused(against="main", variants=["a=git:.@v1", "b=git:.@v2"])
    assert "working_tree needs against" in refused(working_tree=True)
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{repository}", str(shallow))
    told = refused(shallow, against="main")
    command = told.split("run '")[1].split("'")[0]
    subprocess.run(command, shell=True, cwd=shallow, check=True, capture_output=True)
    old, _ = checked(folder=str(shallow), command=COMMAND, against="main").variants
    assert old.endswith(git(repository, "rev-parse", "v2"))


def test_a_shallow_clone_can_be_checked_out(repository: Path, tmp_path: Path) -> None:
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{repository}", str(shallow))
    spec = services(variants=["a=git:.@HEAD", "b=tree:."], folder=str(shallow))[0]
    assert git(prepared(spec), "log", "--format=%s") == "topic"
