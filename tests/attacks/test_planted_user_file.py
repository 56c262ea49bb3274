"""A stranger's perflab.toml above one's own folder names nothing that the lab would execute."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab import user_file
from perflab.errors import ParameterError
from tests.attacks.second_user import Stranger


def test_a_stranger_s_file_is_passed_over(stranger: Stranger) -> None:
    theirs = stranger.common / user_file.NAME
    own = stranger.common / "mine"
    own.mkdir()
    stranger.does(lambda: theirs.write_text(user_file.text()))
    assert theirs.is_file()
    assert user_file.found(own) is None


def test_a_file_that_others_may_change_is_refused_with_the_way_out(tmp_path: Path) -> None:
    file = tmp_path / user_file.NAME
    file.write_text(user_file.text())
    assert user_file.found(tmp_path) == file
    file.chmod(0o646)
    with pytest.raises(ParameterError, match="chmod go-w"):
        user_file.found(tmp_path)
