"""A second user of the host, who is hostile."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.second_user import Stranger


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    """Another user; only root can act as one."""
    if os.getuid():
        if os.environ.get("PERFLAB_REQUIRE_DOCKER") == "1":
            pytest.fail("the attacks are played by a second user, which needs root")
        pytest.skip("only root can act as a second user")
    with tempfile.TemporaryDirectory(prefix="perflab-attack-", dir="/var/tmp") as folder:
        common = Path(folder)
        common.chmod(0o1777)
        made = Stranger(common)
        yield made
        for child in made.started:
            child.kill()
            child.wait()


@pytest.fixture(autouse=True)
def places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A state and lock of this test alone."""
    monkeypatch.setenv("PERFLAB_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("PERFLAB_LOCK", str(tmp_path / "lock"))
    monkeypatch.setattr("perflab.stacks.surveying.docker_client", lambda: None)
    return tmp_path
