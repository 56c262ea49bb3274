"""Nothing is read, written or executed in a folder that somebody else made or can change."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from perflab.cli import app
from perflab.errors import UnsafePlace
from perflab.host.own_folders import check_own, own_folder
from perflab.paths import open_dir, state_dir
from perflab.stacks import environments, leftovers
from perflab.stacks.process_backend import ProcessBackend
from perflab.stacks.spec import load_service
from tests.attacks.second_user import Stranger


@pytest.fixture
def state(stranger: Stranger, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the state folder will be: in a folder where all users may write."""
    path = stranger.common / "perflab-0"
    monkeypatch.setenv("PERFLAB_STATE", str(path))
    return path


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


@pytest.mark.parametrize("umask", [0o000, 0o027, 0o077, 0o777])
def test_the_state_folder_is_made_for_its_owner_alone_under_every_umask(
    state: Path, umask: int
) -> None:
    before = os.umask(umask)
    try:
        ProcessBackend()
    finally:
        os.umask(before)
    assert mode(state) == 0o700
    # What a server that refuses root must reach holds no secret, and nobody else can change it.
    assert mode(open_dir()) == 0o711
    assert mode(open_dir() / "copies") == 0o755


@pytest.mark.parametrize("suffix", ["", "-open"])
def test_a_folder_that_a_stranger_made_is_refused_and_left_as_it_was(
    stranger: Stranger, state: Path, suffix: str
) -> None:
    planted = state.with_name(state.name + suffix)
    stranger.does(lambda: planted.mkdir(mode=0o755))
    with pytest.raises(
        UnsafePlace, match=rf"{planted} belongs to user {stranger.uid}.*PERFLAB_STATE"
    ):
        ProcessBackend()
    assert list(planted.iterdir()) == []
    assert (planted.stat().st_uid, mode(planted)) == (stranger.uid, 0o755)


def test_a_model_or_program_that_a_stranger_planted_is_never_used(
    stranger: Stranger, state: Path
) -> None:
    told = stranger.common / "executed"
    artifacts = state / "artifacts" / "inference-planted"

    def plant() -> None:
        artifacts.mkdir(parents=True)
        (artifacts / "model.joblib").write_bytes(
            b"cposix\nsystem\n(S'touch " + str(told).encode() + b"'\ntR."
        )

    stranger.does(plant)
    with pytest.raises(UnsafePlace):
        ProcessBackend().prepare(load_service("inference"), lambda _: None)
    assert not told.exists()


@pytest.mark.slow
def test_a_pickle_in_the_place_of_the_model_is_not_loaded(tmp_path: Path) -> None:
    told = tmp_path / "executed"
    (tmp_path / "model.joblib").write_bytes(
        b"cposix\nsystem\n(S'touch " + str(told).encode() + b"'\ntR."
    )
    code = (
        "import sys; from pathlib import Path; from app import runtimes;"
        f"print(runtimes.load('sklearn', Path({str(tmp_path)!r}))([0.0] * 30))"
    )
    backend, spec = ProcessBackend(), load_service("inference")
    backend.prepare(spec, lambda _: None)
    python = environments.environment(spec, backend.environments).python
    done = subprocess.run([python, "-c", code], cwd=spec.folder, capture_output=True)
    assert done.returncode == 0
    assert not told.exists()


def test_a_link_is_refused_and_its_target_left_alone(
    stranger: Stranger, state: Path, places: Path
) -> None:
    target = places / "target"
    target.mkdir(mode=0o755)
    stranger.does(lambda: state.symlink_to(target))
    with pytest.raises(UnsafePlace, match=f"is a link, made by user {stranger.uid}"):
        ProcessBackend()
    assert list(target.iterdir()) == []
    assert mode(target) == 0o755


@pytest.mark.parametrize("writable", [0o777, 0o775, 0o772, 0o1777])
def test_a_folder_of_ours_that_others_can_write_in_is_refused(state: Path, writable: int) -> None:
    state.mkdir()
    state.chmod(writable)
    with pytest.raises(UnsafePlace, match=rf"can be written by others \(mode {writable:04o}\)"):
        ProcessBackend()
    assert list(state.iterdir()) == []


def test_a_folder_on_the_way_that_others_can_replace_is_refused(stranger: Stranger) -> None:
    open_to_all = stranger.common / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    with pytest.raises(UnsafePlace, match=rf"{open_to_all}, on the way to .* written by others"):
        own_folder(open_to_all / "state")
    theirs = stranger.common / "theirs"
    stranger.does(lambda: theirs.mkdir(mode=0o755))
    with pytest.raises(UnsafePlace, match=rf"{theirs}, on the way to .* belongs to user"):
        own_folder(theirs / "deep" / "state")
    assert list(open_to_all.iterdir()) == list(theirs.iterdir()) == []


def test_a_link_of_a_stranger_on_the_way_is_refused_also_behind_one_of_ours(
    stranger: Stranger, places: Path
) -> None:
    theirs = stranger.common / "theirs"
    stranger.does(lambda: theirs.symlink_to(places))
    chain = places / "ours"
    chain.symlink_to(theirs)
    for way in (theirs, chain):
        with pytest.raises(UnsafePlace, match=f"{theirs}, on the way to"):
            own_folder(way / "state")
    assert not (places / "state").exists()


def test_a_link_of_our_own_on_the_way_may_be_used(places: Path) -> None:
    (places / "disk").mkdir()
    (places / "link").symlink_to(places / "disk")
    assert mode(own_folder(places / "link" / "new" / "state")) == 0o700
    check_own(places / "disk" / "new" / "state")


def test_ps_and_down_live_with_a_planted_state_folder(stranger: Stranger, state: Path) -> None:
    def plant() -> None:
        (state / "stacks" / "run-1").mkdir(parents=True)
        (state / "token").write_text("0" * 32)

    stranger.does(plant)
    shown = CliRunner().invoke(app, ["ps"])
    assert shown.exit_code == 0
    assert "no services are up" in shown.output
    with pytest.raises(UnsafePlace, match="PERFLAB_STATE"):
        leftovers.orphaned_folders()
    assert (state / "stacks" / "run-1").exists()


def test_a_folder_made_by_an_earlier_version_becomes_ours_alone(state: Path) -> None:
    state.mkdir(mode=0o755)
    ProcessBackend()
    assert mode(state) == 0o700
    assert state_dir() == state
