"""Clean-up finds exactly its own services: by label, user, process, start and host lock."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from perflab.cli import app
from perflab.paths import open_dir, state_dir
from perflab.stacks import cleanup, stack_folders
from perflab.stacks.backend import LabelProblem, Labels
from perflab.stacks.cleanup import containers
from tests.support.children import SLEEPS, child

Runs = Callable[..., subprocess.Popen[str]]


def ours() -> Labels:
    return Labels("run-1", "postgres", "run", 5432)


@pytest.fixture(autouse=True)
def places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Use a state folder and lock of this test alone, and no engine."""
    monkeypatch.setenv("PERFLAB_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("PERFLAB_LOCK", str(tmp_path / "lock"))
    monkeypatch.setattr("perflab.stacks.cleanup.docker_client", lambda: None)


@pytest.fixture
def runs() -> Iterator[Runs]:
    """Return a function that starts processes in an environment; they end with the test."""
    with ExitStack() as started:

        def start(environment: dict[str, str], folder: Path | None = None) -> subprocess.Popen[str]:
            return started.enter_context(child(SLEEPS, env=environment, cwd=folder))

        yield start


@pytest.fixture
def stack() -> Path:
    """Make a stack with data, whose maker has ended."""
    folder = stack_folders.make_stack("run-1")
    (folder / "owner").write_text("boot/1/1")
    (stack_folders.make_data("run-1", "postgres") / "rows").write_text("rows")
    return folder


def perflab(*words: str) -> str:
    done = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_a_labelled_process_is_ended_and_its_stack_removed(runs: Runs, stack: Path) -> None:
    service, other = runs(ours().as_environment()), runs({})
    # Only their working folder identifies PostgreSQL's children.
    inside = runs({}, open_dir() / "data" / "run-1" / "postgres")
    stack_2 = runs(Labels("2", "it", "run").as_environment())
    cleanup.remove_stack("2")
    assert stack_2.wait(5)
    assert [item.identity for item in cleanup.everything()] == [str(service.pid)]
    assert "removed postgres (run-1, process)" in perflab("stack", "down")
    assert service.wait(5)
    assert inside.wait(5)
    assert other.poll() is None
    assert not stack.exists()
    assert not (open_dir() / "data" / "run-1").exists()


def test_another_users_process_is_left_alone_whatever_its_labels(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs(ours().as_environment())
    monkeypatch.setattr("os.getuid", lambda: 61_234)
    assert cleanup.everything() == []


@pytest.mark.parametrize("name", ["../../victim", ""])
def test_a_path_as_a_name_is_refused(runs: Runs, name: str) -> None:
    runs(ours().as_environment() | {"PERFLAB_STACK": name})
    assert cleanup.everything() == []
    with pytest.raises(LabelProblem):
        stack_folders.remove_folders(name)


def test_a_record_means_one_process_and_not_a_later_one_of_its_id(runs: Runs, stack: Path) -> None:
    server = runs({})
    stack_folders.record(stack, ours(), server.pid)
    assert [item.identity for item in cleanup.everything()] == [str(server.pid)]
    (path,) = stack.glob("postgres.*.server")
    path.write_text(path.read_text().replace(f"/{server.pid}/", f"/{server.pid}/1"))
    assert cleanup.everything() == []


def test_services_under_another_lock_keep_running_and_keep_their_folder(
    runs: Runs, stack: Path
) -> None:
    service = runs(ours().as_environment() | {"PERFLAB_SCOPE": "/another/lock"})
    printed = perflab("stack", "down", "--all")
    assert "left alone: postgres (run-1) under another lock; 'PERFLAB_LOCK=/another/lock" in printed
    assert service.poll() is None
    assert stack.exists()


def test_a_stack_whose_maker_has_not_started_a_service_yet_is_left_alone() -> None:
    make = "from perflab.stacks import stack_folders; stack_folders.make_stack('run-9')"
    with child(f"{make}; {SLEEPS}"):
        perflab("stack", "down", "--all")
        assert (state_dir() / "stacks" / "run-9").exists()
    perflab("stack", "down")
    assert not (state_dir() / "stacks" / "run-9").exists()


def test_what_is_removed_while_clean_up_looks_does_not_end_it() -> None:
    code = """
import shutil, sys, time
from perflab.stacks.stack_folders import make_stack
print(flush=True)
while True:
    for number in range(20):
        (make_stack(f"gone-{number}") / "echo.1.server").write_text("{")
    for number in range(20):
        shutil.rmtree(make_stack(f"gone-{number}"))
"""
    with child(code) as maker:
        looks = [
            len(stack_folders.folders()) + len(list(stack_folders.recorded())) for _ in range(2000)
        ]
        assert maker.poll() is None
    assert len(set(looks)) > 2


def test_down_leaves_the_services_of_a_measurement_under_way(runs: Runs) -> None:
    hold = "from perflab.host.lock import measurement_lock\nwith measurement_lock('theirs'):"
    service = runs(ours().as_environment())
    with child(f"{hold} {SLEEPS}") as other:
        assert f"left alone: the services of 'theirs' (pid {other.pid}" in perflab("stack", "down")
        assert service.poll() is None
    assert "removed postgres" in perflab("stack", "down")


def engine_with(*, containers: list[Labels], volumes: list[Labels]) -> Mock:
    """Return an engine with dead containers and volumes; ``removed`` has the stacks of volumes."""
    engine = Mock(removed=[])
    engine.containers.list.return_value = [
        SimpleNamespace(id=item.stack, labels=item.as_docker(), status="exited")
        for item in containers
    ]

    def volume(of: Labels) -> SimpleNamespace:
        return SimpleNamespace(remove=lambda **_: engine.removed.append(of.stack))

    def listed(filters: dict[str, list[str]]) -> list[SimpleNamespace]:
        labels = [{f"{key}={text}" for key, text in of.as_docker().items()} for of in volumes]
        pairs = zip(volumes, labels, strict=True)
        return [volume(of) for of, own in pairs if own.issuperset(filters["label"])]

    engine.volumes.list.side_effect = listed
    return engine


@pytest.mark.promise
@pytest.mark.parametrize("has_containers", [True, False])
def test_the_data_that_a_crashed_run_kept_in_a_volume_are_removed(
    has_containers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = replace(ours(), stack="run-2.kept", scope="/another/lock")
    volumes = [replace(ours(), stack="run-1.kept"), others, Labels("up-1", "postgres", "up")]
    engine = engine_with(containers=[ours()] * has_containers, volumes=volumes)
    monkeypatch.setattr("perflab.stacks.cleanup.docker_client", lambda: engine)
    assert len(cleanup.remove_of_kind("run")) == has_containers
    assert {*engine.removed} == {"run-1.kept"}


def test_with_a_stack_that_is_up_goes_what_it_kept_and_nothing_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    up = Labels("up-1", "postgres", "up")
    volumes = [replace(up, stack=stack) for stack in ("up-1", "up-1.kept", "up-2")]
    engine = engine_with(containers=[up], volumes=volumes)
    monkeypatch.setattr("perflab.stacks.cleanup.docker_client", lambda: engine)
    cleanup.remove_of_kind("up")
    assert {*engine.removed} == {"up-1", "up-1.kept"}


def test_containers_are_filtered_by_project_and_user_and_wrong_labels_are_ignored() -> None:
    good = ours().as_docker()
    all_labels = [good, {**good, "perflab.stack": "../../victim"}, {"perflab.project": "perflab"}]
    engine = Mock()
    engine.containers.list.return_value = [
        SimpleNamespace(id=str(number), labels=labels, status="running")
        for number, labels in enumerate(all_labels)
    ]
    assert [item.identity for item in containers(engine)] == ["0"]
    asked = engine.containers.list.call_args.kwargs["filters"]
    assert asked == {"label": ["perflab.project=perflab", f"perflab.uid={os.getuid()}"]}
