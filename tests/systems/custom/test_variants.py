"""Variants as they are written: found or refused, all problems at once, before anything starts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from perflab import systems
from perflab.errors import ParameterError
from perflab.stacks.spec import load_service
from perflab.systems.custom.parameters import OwnServiceParameters

COMMAND = "python3 server.py --port {port}"


def git(folder: Path, *words: str) -> str:
    author = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.com"]
    done = subprocess.run(
        ["git", "-C", folder, *author, *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two revisions of a service, of which the second has a Dockerfile."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / "server.py").write_text("# one\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "one")
    git(folder, "tag", "v1")
    (folder / "Dockerfile").write_text("FROM scratch\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "two")
    return folder


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFLAB_STATE", str(tmp_path / "state"))


def checked(**values: object) -> OwnServiceParameters:
    found = systems.experiment("custom_service").check(values)
    assert isinstance(found, OwnServiceParameters)
    return found


def problems(**values: object) -> str:
    with pytest.raises(ParameterError) as caught:
        checked(**values)
    return str(caught.value)


def test_a_revision_is_recorded_by_its_commit_and_its_place(repository: Path) -> None:
    found = checked(
        variants=["old=git:.@v1", "new=git:.@HEAD"], folder=str(repository), command=COMMAND
    )
    commits = [git(repository, "rev-parse", each) for each in ("v1", "HEAD")]
    assert found.variants == (
        f"old=git:{repository}@{commits[0]}",
        f"new=git:{repository}@{commits[1]}",
    )
    assert checked(**found.model_dump()).variants == found.variants


def test_what_is_wrong_with_several_variants_is_told_at_once(repository: Path) -> None:
    told = problems(
        variants=["a=git:.@nowhere", "b=kommand:x", "client=command:x", "c=dockerfile:.", "d"],
        folder=str(repository.parent),
        expect_status=7,
    )
    for words in ("a: ", "did you mean 'command'?", "'client' cannot name", "no Dockerfile"):
        assert words in told
    assert "'d' is not NAME=KIND:WHAT" in told
    assert "expect_status" in told


def test_a_revision_without_a_way_to_start_it_is_refused(repository: Path) -> None:
    told = problems(variants=["a=git:.@v1", "b=git:.@HEAD"], folder=str(repository))
    assert "has no Dockerfile; give the command" in told


def test_a_host_that_nobody_allowed_is_refused_before_anything_starts() -> None:
    urls = ["a=url:http://example.com", "b=url:http://127.0.0.1:8001"]
    assert "example.com" in problems(variants=urls)
    assert checked(variants=urls, allow_targets=["example.com"]).variants


def test_processes_and_containers_are_not_compared() -> None:
    told = problems(variants=[f"a=command:{COMMAND}", "b=image:some:tag"])
    assert "run all alike" in told


def test_variants_decide_on_which_backend_they_run() -> None:
    assert checked(variants=["a=image:some:1", "b=image:some:2"]).backend == "docker"
    assert checked().backend == "process"
    assert "need 'process'" in problems(backend="docker")


def test_a_command_with_an_unknown_placeholder_is_refused() -> None:
    told = problems(variants=["a=command:serve {prot}", "b=command:serve {port}"])
    assert "'{prot}'" in told
    assert "{port}" in told


def test_two_loads_at_once_are_refused() -> None:
    assert "give rate, or users" in problems(users=3, rate=5)


def test_a_variant_is_described_once_and_found_by_its_name(repository: Path) -> None:
    values = {"variants": ["o=git:.@v1", "N=git:.@HEAD"], "folder": str(repository)}
    own = systems.experiment("custom_service")
    parameters = checked(**values, command=COMMAND, health="/ready")
    (first, second), again = own.treatments(parameters), own.treatments(parameters)
    assert [first, second] == list(again)
    (node,) = second.stack.nodes
    described = load_service(node.service)
    assert described.health.http == "/ready"
    assert not described.health.any_status
    assert described.command[-4:] == ("python3", "server.py", "--port", "{port}")
    assert first.stack.nodes[0].service != node.service


def test_a_revision_that_brings_a_dockerfile_is_built_from_its_own_files(repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD")
    (repository / "Dockerfile").write_text("changed, not committed\n")
    parameters = checked(variants=["a=git:.@HEAD", f"b=git:.@{head}"], folder=str(repository))
    assert parameters.backend == "docker"
    treatment = systems.experiment("custom_service").treatments(parameters)[0]
    folder = load_service(treatment.stack.nodes[0].service).folder
    assert (folder / "Dockerfile").read_text() == "FROM scratch\n"
    (warning,) = systems.experiment("custom_service").warnings(parameters)
    assert "not committed" in warning.text


def test_what_shares_a_folder_with_others_is_not_believed(repository: Path, tmp_path: Path) -> None:
    parameters = checked(
        variants=["a=git:.@v1", "b=git:.@HEAD"], folder=str(repository), command=COMMAND
    )
    service = systems.experiment("custom_service").treatments(parameters)[0].stack.nodes[0].service
    place = tmp_path / "state" / "variants"
    assert place.stat().st_mode & 0o777 == 0o700
    assert load_service(service).name == service
    theirs = tmp_path / "theirs"
    place.rename(theirs)
    place.symlink_to(theirs)
    with pytest.raises(Exception, match="is a link"):
        load_service(service)
