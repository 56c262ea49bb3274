"""What services share is part of each that asks for it, and of its image."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import pytest

from perflab.paths import services_dir
from perflab.stacks.builds import content_hash
from perflab.stacks.docker import images
from perflab.stacks.spec import load_service


def test_what_is_shared_is_part_of_the_service_and_of_its_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("llm_proxy", "echo", "common"):
        shutil.copytree(services_dir() / name, tmp_path / name)
    monkeypatch.setattr("perflab.stacks.spec.services_dir", lambda: tmp_path)
    proxy, echo = (load_service(name) for name in ("llm_proxy", "echo"))
    before = [content_hash(*spec.sources) for spec in (proxy, echo)]
    with tarfile.open(fileobj=images._context(proxy)) as archive:
        assert {"Dockerfile", "common/specimen/counts.py"} <= set(archive.getnames())
    (tmp_path / "common" / "specimen" / "counts.py").write_text("raise ValueError")
    after = [content_hash(*spec.sources) for spec in (proxy, echo)]
    assert (before[0] != after[0], before[1] == after[1]) == (True, True)
