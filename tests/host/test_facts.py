"""The fingerprint of what measures: it changes with every byte of it, and with nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab.host import facts
from perflab.host.fingerprint import PLACES, of_all, sources


def fingerprint() -> str:
    return of_all(sources())


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for place in PLACES:
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "code.py").write_text("x = 1\n")
    (tmp_path / "notebooks").mkdir()
    monkeypatch.setenv("PERFLAB_ROOT", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("place", PLACES)
def test_a_change_of_any_source_that_measures_is_another_fingerprint(
    checkout: Path, place: str
) -> None:
    seen = [fingerprint()]
    code = checkout / place / "code.py"
    for change in (
        lambda: code.write_text("x = 2\n"),
        lambda: code.rename(code.with_name("other.py")),
        lambda: (code.parent / "deep").mkdir() or (code.parent / "deep" / "new.sql").touch(),
        lambda: code.with_name("other.py").unlink(),
    ):
        change()
        seen.append(fingerprint())
    assert len(set(seen)) == 5


def test_what_does_not_measure_changes_no_fingerprint(checkout: Path) -> None:
    before = fingerprint()
    (checkout / "notebooks" / "a.ipynb").write_text("{}")
    cache = checkout / PLACES[0] / "__pycache__"
    cache.mkdir()
    (cache / "code.pyc").write_bytes(b"1")
    assert fingerprint() == before
    assert facts.code()["fingerprint"] == before


def test_the_lab_s_own_fingerprint_is_of_what_is_there() -> None:
    assert len(fingerprint()) == 16
    assert int(fingerprint(), 16) > 0
