"""Files of submodules and of LFS are in the trees that are measured, or the duel is refused."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from perflab import systems
from perflab.stacks.spec import load_service
from tests.systems.custom.test_trees import prepared, services
from tests.systems.custom.test_variants import COMMAND, checked, git, problems, two_revisions

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize {}\n"
MODEL = b"weights\0" * 400


@pytest.fixture(autouse=True)
def _places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFLAB_STATE", str(tmp_path / "state"))
    # Git refuses submodules of folders unless it is told otherwise.
    for name, value in (("COUNT", "1"), ("KEY_0", "protocol.file.allow"), ("VALUE_0", "always")):
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A service with a submodule that has one itself; v2 has its first commit, HEAD another."""
    inner = two_revisions(tmp_path / "inner", ("deep", "deep\n"))
    outer = two_revisions(tmp_path / "outer", ("part", "one\n"))
    git(outer, "submodule", "--quiet", "add", "--name", "in", f"file://{inner}", "inner")
    git(outer, "commit", "--quiet", "-m", "inner")
    folder = two_revisions(tmp_path / "repository", ("server.py", "# one\n"))
    git(folder, "submodule", "--quiet", "add", "--name", "ours", f"file://{outer}", "vendor/part s")
    git(folder, "submodule", "--quiet", "update", "--init", "--recursive")
    git(folder, "commit", "--quiet", "-m", "part")
    git(folder, "tag", "v2")
    within = folder / "vendor" / "part s"
    (within / "part").write_text("two\n")
    git(within, "commit", "--quiet", "--all", "-m", "two")
    git(folder, "commit", "--quiet", "--all", "-m", "newer part")
    return folder


def trees(folder: Path, *variants: str, **values: object) -> list[Path]:
    named = [f"v{number}={text}" for number, text in enumerate(variants)]
    return [prepared(spec) for spec in services(variants=named, folder=str(folder), **values)]


def refused(folder: Path, *variants: str) -> str:
    named = [f"v{number}={text}" for number, text in enumerate(variants)]
    return problems(variants=named, folder=str(folder), command=COMMAND)


def run_what_it_names(text: str, folder: Path, number: int = 0) -> None:
    command = text.split("run '")[1].split("'")[2 * number]
    subprocess.run(command, shell=True, cwd=folder, check=True, capture_output=True)


def test_each_commit_has_the_submodules_that_it_names(repository: Path) -> None:
    before = git(repository, "status", "--porcelain")
    old, new = trees(repository, "git:.@v2", "git:.@HEAD")
    parts = [(tree / "vendor/part s/part").read_text() for tree in (old, new)]
    assert parts == ["one\n", "two\n"]
    assert (old / "vendor/part s/inner/deep").read_text() == "deep\n"
    assert git(new, "status", "--porcelain") == ""
    assert git(repository, "status", "--porcelain") == before


def test_a_submodule_that_is_not_checked_out_now_is_taken_from_what_was_fetched(
    repository: Path,
) -> None:
    git(repository, "checkout", "--quiet", "--force", "v1")
    shutil.rmtree(repository / "vendor")
    old, new = trees(repository, "git:.@v2", "git:.@v1")
    assert (old / "vendor/part s/inner/deep").exists()
    assert not (new / "vendor").exists()


def test_a_submodule_that_was_not_fetched_is_refused_with_the_way_to_get_it(
    repository: Path, tmp_path: Path
) -> None:
    git(tmp_path, "clone", "--quiet", f"file://{repository}", "clone")
    clone = tmp_path / "clone"
    for variants in (("git:.@v2", "git:.@v1"), ("tree:.", "git:.@v1")):
        text = refused(clone, *variants)
        assert "the submodule 'vendor/part s' is not here" in text
        assert "git submodule update --init --recursive" in text
    run_what_it_names(text, clone, 1)
    trees(clone, "git:.@v2", "tree:.")
    git(clone, "config", "--unset", "submodule.ours.update")
    # The newer commit was never pushed.
    git(clone, "reset", "--quiet", "--hard", "v2")
    run_what_it_names(refused(clone, "git:.@v2", "git:.@v1"), clone)
    assert (trees(clone, "git:.@v2", "tree:.")[1] / "vendor/part s/inner/deep").exists()
    text = refused(clone, "git:.@origin/HEAD", "git:.@v1")
    assert "the submodule 'vendor/part s' lacks its commit" in text
    newer = repository / "vendor" / "part s"
    git(newer, "push", "--quiet", "origin", "HEAD:refs/heads/newer")
    run_what_it_names(text, clone)
    (tree, _) = trees(clone, "git:.@origin/HEAD", "git:.@v1")
    assert (tree / "vendor/part s/part").read_text() == "two\n"


def test_a_working_tree_has_its_submodules_as_they_stand(repository: Path) -> None:
    within = repository / "vendor" / "part s"
    (within / "part").write_text("not committed\n")
    (within / "inner" / "new").write_text("new\n")
    first = checked(variants=["a=tree:.", "b=git:.@v1"], folder=str(repository), command=COMMAND)
    tree, _ = trees(repository, "tree:.", "git:.@v1")
    assert (tree / "vendor/part s/part").read_text() == "not committed\n"
    assert (tree / "vendor/part s/inner/new").exists()
    (within / "inner" / "new").unlink()
    again = checked(variants=["a=tree:.", "b=git:.@v1"], folder=str(repository), command=COMMAND)
    assert first.variants[0] != again.variants[0]


def test_an_image_is_built_without_the_repositories_of_submodules(repository: Path) -> None:
    (repository / "Dockerfile").write_text("FROM scratch\n")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "image")
    parameters = checked(variants=["a=git:.@HEAD", "b=tree:."], folder=str(repository))
    for treatment in systems.experiment("custom_service").treatments(parameters):
        spec = load_service(treatment.stack.nodes[0].service)
        files = {path.name for path in spec.folder.rglob("*")}
        assert {"Dockerfile", "part", "deep"} <= files
        assert ".git" not in files


@pytest.fixture
def of_lfs(tmp_path: Path) -> Path:
    """A repository with two files that LFS keeps; what it fetched lies where LFS puts it."""
    digest = hashlib.sha256(MODEL).hexdigest()
    rules = (".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
    folder = two_revisions(tmp_path / "lfs", ("server.py", "# one\n"), rules)
    (folder / "a folder").mkdir()
    for name in ("model.bin", "a folder/it's.bin"):
        (folder / name).write_text(POINTER.format(digest, len(MODEL)))
    (folder / "README").write_text(f"A pointer:\n\n{POINTER.format(digest, 1)}")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "model")
    kept = folder / ".git" / "lfs" / "objects" / digest[:2] / digest[2:4] / digest
    kept.parent.mkdir(parents=True)
    kept.write_bytes(MODEL)
    return folder


def test_a_commit_has_the_files_that_lfs_keeps(of_lfs: Path) -> None:
    new, old = trees(of_lfs, "git:.@HEAD", "git:.@v1", prepare="true")
    assert (new / "model.bin").read_bytes() == MODEL
    assert (new / "a folder" / "it's.bin").read_bytes() == MODEL
    assert (new / "README").read_text().startswith("A pointer")
    assert git(new, "describe", "--tags", "--dirty").startswith("v2-1-g")
    assert "dirty" not in git(new, "describe", "--tags", "--dirty")
    assert not (old / "model.bin").exists()


def test_files_that_lfs_has_not_fetched_are_refused(of_lfs: Path) -> None:
    shutil.rmtree(of_lfs / ".git" / "lfs")
    text = refused(of_lfs, "git:.@HEAD", "git:.@v1")
    head = git(of_lfs, "rev-parse", "HEAD")
    assert "not here (a folder/it's.bin and 1 more)" in text
    assert f"run 'git lfs fetch origin {head}' in {of_lfs}" in text
    assert checked(
        variants=["a=git:.@v1", "b=git:.@v2"], folder=str(of_lfs), command=COMMAND
    ).variants, "these have none"


def test_a_working_tree_of_pointers_is_refused(of_lfs: Path) -> None:
    text = refused(of_lfs, "tree:.", "git:.@v1")
    assert f"{of_lfs} are only pointers of Git LFS (a folder/it's.bin and 1 more)" in text
    assert "git lfs pull" in text
    for name in ("model.bin", "a folder/it's.bin"):
        (of_lfs / name).write_bytes(MODEL)
    tree, _ = trees(of_lfs, "tree:.", "git:.@v1")
    assert (tree / "model.bin").read_bytes() == MODEL
