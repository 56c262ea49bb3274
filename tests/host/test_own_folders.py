"""The user's own folders: the lab reads, writes and executes nothing in another user's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perflab.errors import UnsafePlace
from perflab.host.files import check_own, own_folder


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_a_folder_is_made_for_its_user_alone_under_every_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        folder = own_folder(tmp_path / "state")
    finally:
        os.umask(before)
    assert mode(folder) == 0o700
    folder.chmod(0o755)
    assert mode(own_folder(folder)) == 0o700, "one that is there gets the mode"


def test_another_users_folder_is_refused_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").mkdir()
    monkeypatch.setattr("os.getuid", lambda: 61_234)
    with pytest.raises(UnsafePlace, match=r"belongs to user .*PERFLAB_STATE"):
        own_folder(tmp_path / "state")


def test_a_folder_that_others_can_write_in_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    with pytest.raises(UnsafePlace, match=r"can be written by others \(mode 1777\)"):
        own_folder(tmp_path)
    assert mode(tmp_path) == 0o1777


def test_a_link_and_a_file_are_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir(0o755)
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(UnsafePlace, match="is a link"):
        own_folder(tmp_path / "link")
    assert mode(tmp_path / "target") == 0o755
    (tmp_path / "file").touch()
    with pytest.raises(UnsafePlace, match="is not a folder"):
        check_own(tmp_path / "file")
