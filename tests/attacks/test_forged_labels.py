"""Labels are believed only of our own processes: nobody makes the lab end or delete anything."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from perflab.cli import app
from perflab.paths import lock_path, open_dir, state_dir
from perflab.stacks import leftovers, stack_folders
from perflab.stacks.labels import Labels
from perflab.stacks.surveying import containers, processes
from tests.attacks.second_user import Stranger


@pytest.fixture
def victim(places: Path) -> Iterator[Path]:
    """A folder beside the state folder that must outlive every attack."""
    folder = places / "victim"
    folder.mkdir()
    (folder / "precious").write_text("kept")
    yield folder
    assert (folder / "precious").read_text() == "kept"


@pytest.fixture
def stack() -> Path:
    """A stack of ours whose maker has ended, with data."""
    folder = stack_folders.make_stack("run-1")
    (stack_folders.make_data("run-1", "postgres") / "rows").write_text("rows")
    return folder


def forged(**changes: str) -> dict[str, str]:
    return {
        "PERFLAB_PROJECT": "perflab",
        "PERFLAB_STACK": "run-1",
        "PERFLAB_SERVICE": "postgres",
        "PERFLAB_KIND": "run",
        "PERFLAB_PORT": "5432",
        "PERFLAB_SCOPE": str(lock_path()),
        **changes,
    }


def ours(**changes: str) -> dict[str, str]:
    """Return an environment with the secret, as if a service of ours had been told garbage."""
    return Labels("run-1", "postgres", "run").as_environment() | changes


def perflab(*words: str) -> str:
    done = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def wait_for(pid: int, program: str = "sleep") -> None:
    """Wait until a process has become what it was asked to run."""
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}/comm").read_text().strip() != program:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("stack_name", ["../../victim", "/absolute", "..", "", "run-1", "."])
def test_a_strangers_process_is_neither_ended_nor_believed(
    stranger: Stranger, stack: Path, victim: Path, stack_name: str
) -> None:
    name = str(victim) if stack_name == "/absolute" else stack_name
    pid = stranger.runs("sleep", "60", **forged(PERFLAB_STACK=name))
    wait_for(pid)
    assert leftovers.everything() == []
    # Its environment was not even read: its owner could make that block.
    assert not [text for text in processes().warnings if f"process {pid} " in text]
    leftovers.remove_of_kind("run")
    assert stranger.is_running(pid)
    assert stack.exists()


@pytest.mark.parametrize("stack_name", ["../../victim", "run-1"])
def test_a_program_that_a_stranger_started_and_that_became_ours_is_not_believed(
    stranger: Stranger, stack: Path, victim: Path, stack_name: str
) -> None:
    """Sudo and its like run as root in the environment that their caller made."""
    pid = stranger.runs("sleep", "60", uid=os.getuid(), **forged(PERFLAB_STACK=stack_name))
    wait_for(pid)
    assert leftovers.remove_of_kind(None) == []
    for command in ("ps", "down"):
        assert stack.exists()
        assert f"process {pid} says it is the lab's, and is left alone" in perflab(command)
    assert stranger.is_running(pid)
    assert victim.exists()


@pytest.mark.parametrize(
    ("label", "value"),
    [
        ("PERFLAB_STACK", "../../victim"),
        ("PERFLAB_STACK", ".."),
        ("PERFLAB_STACK", "a/../../../victim"),
        ("PERFLAB_STACK", "x" * 300),
        ("PERFLAB_SERVICE", "../../../../etc/passwd"),
        ("PERFLAB_PORT", "garbage"),
        ("PERFLAB_PORT", "99999999999999999999"),
        ("PERFLAB_PORT", "\u0664\u0662"),
        ("PERFLAB_KIND", "\x1b[2J"),
    ],
)
def test_a_label_that_the_lab_cannot_have_written_is_skipped_with_a_word(
    stranger: Stranger, victim: Path, label: str, value: str
) -> None:
    pid = stranger.runs("sleep", "60", uid=os.getuid(), **ours(**{label: value}))
    wait_for(pid)
    for command in ("ps", "down"):
        said = perflab(command)
        assert f"process {pid} says it is the lab's, and is left alone: {label} is '" in said
        assert "\x1b" not in said
    assert stranger.is_running(pid)
    assert victim.exists()


def test_logs_are_read_from_the_stack_alone(stranger: Stranger, stack: Path, victim: Path) -> None:
    (stack / "postgres.log").write_text("what the service wrote")
    environment = ours(PERFLAB_LOG=str(victim / "precious"))
    pid = stranger.runs("sleep", "60", uid=os.getuid(), **environment)
    wait_for(pid)
    assert perflab("logs", "postgres") == "what the service wrote\n"


def test_a_process_of_ours_that_knows_the_secret_is_ended_and_its_stack_removed(
    stranger: Stranger, stack: Path
) -> None:
    pid = stranger.runs("sleep", "60", uid=os.getuid(), **ours())
    wait_for(pid)
    assert [item.identity for item in leftovers.everything()] == [str(pid)]
    assert "removed postgres (run-1, process)" in perflab("down")
    assert not stranger.is_running(pid)
    assert not stack.exists()
    assert not (open_dir() / "data" / "run-1").exists()


def test_a_server_that_runs_as_another_user_is_known_by_its_record_alone(
    stranger: Stranger, stack: Path
) -> None:
    labels = Labels("run-1", "postgres", "run", 5432)
    server = stranger.runs("sleep", "60", **labels.as_unproven())
    copied = stranger.runs("sleep", "60", **labels.as_unproven())
    wait_for(server)
    wait_for(copied)
    stack_folders.record(stack, labels, server)
    assert [item.identity for item in processes().found] == [str(server)]
    leftovers.remove_of_kind("run")
    assert not stranger.is_running(server)
    assert stranger.is_running(copied)


def test_a_record_means_one_process_and_not_a_later_one_of_its_number(
    stranger: Stranger, stack: Path
) -> None:
    labels = Labels("run-1", "postgres", "run", 5432)
    pid = stranger.runs("sleep", "60")
    wait_for(pid)
    stack_folders.record(stack, labels, pid)
    path = stack / "postgres.server"
    path.write_text(path.read_text().replace(f"/{pid}/", f"/{pid}/1"))
    assert processes().found == ()


def test_the_secret_is_given_to_no_process_of_another_user() -> None:
    labels = Labels("run-1", "postgres", "run")
    assert labels.as_environment()["PERFLAB_TOKEN"] not in labels.as_unproven().values()
    assert "TOKEN" not in "".join([*labels.as_unproven(), *labels.as_docker()])
    assert (state_dir() / "token").stat().st_mode & 0o777 == 0o600


def test_a_link_among_the_stacks_is_left_with_a_word(stack: Path, victim: Path) -> None:
    link = stack.with_name("run-2")
    link.symlink_to(victim)
    odd = stack.with_name("\x1b[2J")
    odd.mkdir()
    said = perflab("down")
    assert f"left alone: {link}, which is no folder of a stack" in said
    assert "\x1b" not in said
    assert link.is_symlink()
    assert odd.exists()


def test_a_link_within_a_stack_is_removed_and_not_followed(stack: Path, victim: Path) -> None:
    (open_dir() / "data" / "run-1" / "postgres" / "link").symlink_to(victim)
    leftovers.remove_folder(stack)
    assert not stack.exists()


ELSEWHERE = """
import os, subprocess, sys, time
from perflab.host.lock import measurement_lock
from perflab.stacks import stack_folders
from perflab.stacks.labels import Labels
with measurement_lock("elsewhere"):
    stack_folders.make_stack("run-9")
    if sys.argv[1] == "started":
        environment = Labels("run-9", "chat", "run").as_environment()
        service = subprocess.Popen(["sleep", "60"], env={**os.environ, **environment})
    print("up", flush=True)
    sys.stdin.read()
    if sys.argv[1] == "started":
        assert service.poll() is None
        service.kill()
        service.wait()
"""


@pytest.mark.parametrize("progress", ["started", "about to start"])
def test_down_leaves_a_live_stack_of_another_lock_and_says_so(places: Path, progress: str) -> None:
    lock = str(places / "other-lock")
    other = subprocess.Popen(
        [sys.executable, "-c", ELSEWHERE, progress],
        env={**os.environ, "PERFLAB_LOCK": lock},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert other.stdout is not None
    try:
        assert other.stdout.readline() == b"up\n"
        said = perflab("down", "--all")
        assert (state_dir() / "stacks" / "run-9").exists()
        if progress == "started":
            assert f"left alone: chat (run-9) under another lock; 'PERFLAB_LOCK={lock}" in said
    finally:
        other.communicate()
    assert other.returncode == 0
    perflab("down")
    assert not (state_dir() / "stacks" / "run-9").exists()


def test_services_that_stay_up_under_another_lock_keep_their_folder(
    stranger: Stranger, stack: Path
) -> None:
    (stack / "owner").write_text("boot/1/1")  # who made it has ended
    environment = ours(PERFLAB_SCOPE="/another/lock", PERFLAB_KIND="up")
    pid = stranger.runs("sleep", "60", uid=os.getuid(), **environment)
    wait_for(pid)
    said = perflab("down", "--all")
    assert "left alone: postgres (run-1) under another lock" in said
    assert stranger.is_running(pid)
    assert stack.exists()


def test_down_leaves_the_services_of_a_measurement_under_way(stranger: Stranger) -> None:
    code = "\n".join(
        [
            "import sys",
            "from perflab.host.lock import measurement_lock",
            "with measurement_lock('theirs'): print('held', flush=True); sys.stdin.read()",
        ]
    )
    measuring = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert measuring.stdout is not None
    assert measuring.stdout.readline() == b"held\n"
    pid = stranger.runs("sleep", "60", uid=os.getuid(), **ours())
    wait_for(pid)
    said = perflab("down")
    assert f"left alone: the services of 'theirs' (pid {measuring.pid}" in said
    assert stranger.is_running(pid)
    measuring.communicate()
    assert "removed postgres" in perflab("down")


class Engine:
    """A Docker engine with containers that carry these labels."""

    def __init__(self, *labels: dict[str, str]) -> None:
        listed = [
            SimpleNamespace(id=str(number), name="na\x1bme", labels=each, status="running")
            for number, each in enumerate(labels)
        ]
        self.containers = SimpleNamespace(list=lambda **_: listed)


def test_containers_labels_are_checked_too_and_another_users_are_left() -> None:
    good = Labels("run-1", "postgres", "run", 5432).as_docker()
    seen = containers(
        Engine(
            good,
            {**good, "perflab.stack": "../../victim"},
            {**good, "perflab.port": "garbage"},
            {**good, "perflab.uid": "61234"},
            {**good, "perflab.uid": "\x1b"},
            {"perflab.project": "perflab"},
        )
    )
    assert [item.identity for item in seen.found] == ["0"]
    assert [text.partition("left alone: ")[2] for text in seen.warnings] == [
        "perflab.stack is '../../victim'",
        "perflab.port is 'garbage'",
        "its user is user 61234",
        "its user is '?'",
        "perflab.stack is ''",
    ]


def test_a_dead_service_is_not_mistaken_for_a_live_one(stranger: Stranger) -> None:
    pid = stranger.runs("sleep", "60", uid=os.getuid(), **ours())
    wait_for(pid)
    os.kill(pid, signal.SIGKILL)
    time.sleep(0.1)  # it stays a zombie: nobody has waited for it
    assert processes().found == ()
