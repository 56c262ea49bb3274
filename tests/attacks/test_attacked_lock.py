"""A stranger at the host's lock can make the lab wait, and nothing else."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from perflab.errors import HostBusy, UnsafePlace
from perflab.host.lock import holder, measurement_lock, problem
from perflab.paths import lock_path
from tests.attacks.second_user import Stranger


@pytest.fixture
def path(stranger: Stranger) -> Path:
    return stranger.common / "lock"


def measure(path: Path) -> None:
    with measurement_lock("ours", path=path):
        pass


@contextlib.contextmanager
def held_by(stranger: Stranger, path: Path) -> Iterator[int]:
    """Let the stranger hold the lock; yield the holder's process id."""
    pid = stranger.runs("flock", str(path), "sleep", "60")
    deadline = time.monotonic() + 10
    while holder(path) is None and time.monotonic() < deadline:
        time.sleep(0.02)
    yield pid


def test_a_link_is_not_followed_and_its_target_stays_as_it_was(
    stranger: Stranger, path: Path, places: Path
) -> None:
    victim = places / "victim"
    victim.write_text("precious")
    stranger.does(lambda: path.symlink_to(victim))
    with pytest.raises(UnsafePlace, match=rf"is a link, made by user {stranger.uid}.*PERFLAB_LOCK"):
        measure(path)
    assert victim.read_text() == "precious"


def test_a_link_to_nothing_makes_no_file(stranger: Stranger, path: Path, places: Path) -> None:
    stranger.does(lambda: path.symlink_to(places / "made"))
    with pytest.raises(UnsafePlace, match="is a link"):
        measure(path)
    assert not (places / "made").exists()


def test_a_hard_link_to_a_file_of_ours_is_neither_written_nor_locked(path: Path) -> None:
    victim = path.with_name("victim")
    victim.write_text("precious")
    os.link(victim, path)
    with pytest.raises(UnsafePlace, match="another file too"):
        measure(path)
    assert victim.read_text() == "precious"


@pytest.mark.parametrize(
    ("kind", "make"),
    [("a FIFO", lambda at: os.mkfifo(at, 0o666)), ("a folder", lambda at: at.mkdir(0o777))],
)
@pytest.mark.timeout(20)
def test_what_is_no_file_is_told_and_blocks_nobody(
    stranger: Stranger, path: Path, kind: str, make: object
) -> None:
    stranger.does(lambda: make(path))  # type: ignore[operator]
    with pytest.raises(UnsafePlace, match=f"{kind}, made by user {stranger.uid}.*PERFLAB_LOCK"):
        measure(path)
    assert holder(path) is None
    assert kind in problem(path)


def test_a_file_that_may_not_be_opened_is_told(stranger: Stranger, path: Path) -> None:
    path.touch()
    path.chmod(0o600)
    told = stranger.common / "told"

    def measured_by_the_other() -> None:
        try:
            measure(path)
        except UnsafePlace as error:
            told.write_text(str(error))

    stranger.does(measured_by_the_other)
    assert "cannot be opened (Permission denied)" in told.read_text()
    assert "PERFLAB_LOCK" in told.read_text()


def test_users_share_one_lock_whoever_came_first_and_whatever_their_umask(
    stranger: Stranger, path: Path
) -> None:
    before = os.umask(0o077)
    try:
        measure(path)
    finally:
        os.umask(before)
    stranger.does(lambda: measure(path))
    with held_by(stranger, path) as pid, pytest.raises(HostBusy, match=rf"pid {pid} of user"):
        measure(path)


def test_a_holder_of_another_user_is_named_by_the_kernel_not_by_what_the_file_says(
    stranger: Stranger, path: Path
) -> None:
    note = json.dumps({"pid": 1, "what": "\x1b[2Jinit\nall is well", "since": "\x07"})
    stranger.does(lambda: path.write_text(note))
    with held_by(stranger, path) as pid:
        found = holder(path)
        assert found is not None
        assert str(found) == f"'flock' (pid {pid} of user {stranger.uid})"


def test_what_a_holder_says_of_itself_is_short_and_without_control_characters(
    stranger: Stranger, path: Path
) -> None:
    stranger.does(path.touch)
    with held_by(stranger, path) as pid:
        said = {"pid": pid, "what": "\x1b]0;owned\x07\u202e" + "x" * 500, "since": ["\x1b[31m"]}
        stranger.does(lambda: path.write_text(json.dumps(said)))
        with pytest.raises(HostBusy) as caught:
            measure(path)
    assert "?]0;owned??xxx" in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("content", [b"[" * 5000, b"\xff\x00", b"{}", b'{"pid": {}}', b"9" * 900])
def test_garbage_in_the_file_hurts_nobody(stranger: Stranger, path: Path, content: bytes) -> None:
    stranger.does(lambda: path.write_bytes(content))
    with held_by(stranger, path) as pid, pytest.raises(HostBusy, match=f"pid {pid} of user"):
        measure(path)


def test_nothing_is_written_into_a_file_of_another_user(stranger: Stranger, path: Path) -> None:
    stranger.does(lambda: path.write_text("theirs"))
    with measurement_lock("ours", path=path):
        found = holder(path)
        assert found is not None
        assert found.pid == os.getpid()
    assert path.read_text() == "theirs"


def test_a_lock_file_that_is_deleted_while_held_does_not_make_two_holders(path: Path) -> None:
    with measurement_lock("first", path=path):
        path.unlink()
        found = holder(path)
        assert found is not None
        assert found.pid == os.getpid()
        with pytest.raises(HostBusy, match=f"pid {os.getpid()}"):
            measure(path)
    measure(path)


def test_a_file_that_was_put_in_the_place_of_the_locked_one_is_not_enough(path: Path) -> None:
    with measurement_lock("first", path=path):
        path.rename(path.with_name("away"))
        path.touch()
        with pytest.raises(HostBusy):
            measure(path)


def test_a_lock_on_a_file_that_was_deleted_just_before_is_no_lock(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.flock
    deleted = []

    def delete_first(descriptor: int, how: int) -> None:
        if not deleted:
            deleted.append(path)
            path.unlink()
        lock(descriptor, how)

    monkeypatch.setattr("fcntl.flock", delete_first)
    with measurement_lock("ours", path=path):
        found = holder(path)
        assert found is not None
        assert found.what == "ours"
        assert path.exists()


def test_two_temporary_folders_are_still_one_host(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PERFLAB_LOCK")
    code = "from perflab.paths import lock_path; print(lock_path())"
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "TMPDIR": folder},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for folder in ("/tmp", str(places))
    }
    assert found == {f"{lock_path()}\n"}


def test_looking_never_makes_a_starter_find_the_host_busy(places: Path) -> None:
    path = places / "lock"
    looked = 0
    ended = threading.Event()

    def look() -> None:
        nonlocal looked
        while not ended.is_set():
            holder(path)
            looked += 1

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for _ in range(200):
            measure(path)
    finally:
        ended.set()
        watcher.join()
    assert looked > 20


def test_a_stranger_who_took_the_guard_is_named(stranger: Stranger, path: Path) -> None:
    from perflab.host import lock_guard

    name = lock_guard._name(path).decode()
    code = (
        "use Socket; socket(my $s, AF_UNIX, SOCK_STREAM, 0); "
        "bind($s, pack_sockaddr_un($ENV{NAME})) or die; listen($s, 5); sleep 60"
    )
    pid = stranger.runs("perl", "-e", code.replace("$ENV{NAME}", f'"\\0{name[1:]}"'))
    deadline = time.monotonic() + 10
    while holder(path) is None and time.monotonic() < deadline:
        time.sleep(0.02)
    with pytest.raises(HostBusy, match=rf"'perl' \(pid {pid} of user {stranger.uid}\)"):
        measure(path)


def test_a_shared_hold_makes_us_wait_until_it_ends(path: Path) -> None:
    path.touch(mode=0o644)
    descriptor = os.open(path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    threading.Timer(0.3, os.close, [descriptor]).start()
    waited = []
    with measurement_lock("ours", wait_s=10, path=path, on_wait=waited.append):
        pass
    assert len(waited) == 1
