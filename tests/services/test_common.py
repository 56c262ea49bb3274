"""What services share: part of each that asks for it, and counts that are true in any thread."""

from __future__ import annotations

import shutil
import tarfile
import threading
from pathlib import Path

import pytest
from specimen.counts import Counts

from perflab.paths import services_dir
from perflab.stacks import images
from perflab.stacks.builds import content_hash
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


def test_counts_of_many_threads_add_up_and_begin_anew_with_what_is_under_way() -> None:
    counts = Counts()

    def work() -> None:
        for _ in range(1000):
            counts.add(open=1)
            counts.refuse("late")
            counts.add(open=-1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts.add(open=3)
    shown = counts.shown()
    assert (shown["open"], shown["refused"]) == (3, {"late": 8000})
    assert 3 <= shown["most_open"] <= 8
    counts.clear()
    assert (counts.open, counts.most_open, counts.refused) == (3, 3, {})
