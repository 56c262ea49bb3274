"""One measurement per host."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from perflab.errors import HostBusy, UnsafePlace
from perflab.host.lock import holder, measurement_lock, other_users
from tests.support.children import SLEEPS, child

HOLD = f"from perflab.host.lock import measurement_lock\nwith measurement_lock('other'): {SLEEPS}"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "own" / "lock"
    monkeypatch.setenv("PERFLAB_LOCK", str(path))
    return path


@pytest.mark.promise
def test_a_second_measurement_is_refused_and_told_who_holds_the_host(path: Path) -> None:
    with measurement_lock("first"):
        with pytest.raises(HostBusy, match="first"), measurement_lock("second"):
            pass
        current = holder()
        assert current is not None
        assert (current.what, current.pid) == ("first", os.getpid())
        modes = [place.stat().st_mode & 0o777 for place in (path.parent, path)]
        assert modes == [0o700, 0o600], "both are the user's alone"
    assert holder() is None


@pytest.mark.usefixtures("path")
def test_a_second_measurement_waits_for_the_first_to_end() -> None:
    first = measurement_lock("first")
    first.__enter__()
    threading.Timer(0.3, first.__exit__, [None, None, None]).start()
    texts: list[str] = []
    with measurement_lock("second", wait_s=10, tell=texts.append):
        assert "'second'" in str(holder())
    (text,) = texts
    assert text.startswith("waiting, at most 10 s, until this host is free: it measures 'first'")


@pytest.mark.usefixtures("path")
def test_a_wait_ends_when_its_user_wants_that() -> None:
    def enough() -> None:
        raise KeyboardInterrupt

    second = measurement_lock("second", wait_s=60, go_on=enough)
    with measurement_lock("first"), pytest.raises(KeyboardInterrupt):
        second.__enter__()


@pytest.mark.usefixtures("path")
def test_the_lock_is_free_after_its_holder_was_killed() -> None:
    with child(HOLD):
        assert holder() is not None
    assert holder() is None
    with measurement_lock("next"):
        pass


def test_a_link_is_not_followed_and_its_target_stays_as_it_was(path: Path) -> None:
    path.parent.mkdir(0o700)
    victim = path.with_name("victim")
    victim.write_text("precious")
    path.symlink_to(victim)
    with pytest.raises(UnsafePlace, match="PERFLAB_LOCK"), measurement_lock("ours"):
        pass
    assert victim.read_text() == "precious"


def test_a_lock_that_a_child_still_holds_is_busy_whatever_its_note(path: Path) -> None:
    with measurement_lock("first"):
        for note in ("", "[", '{"holder": "boot/1/1"}'):
            path.write_text(note)
            assert holder() is None
        with pytest.raises(HostBusy, match="cannot be seen"), measurement_lock("b"):
            pass


def test_another_user_who_measures_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with child(SLEEPS, "perflab.trials.conductor"):
        assert other_users() == []
        monkeypatch.setattr("os.getuid", lambda: 61_234)
        assert any("measures on this host now" in word for word in other_users())
