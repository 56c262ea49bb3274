"""The place of a record is looked at before a load, and nothing but a record is left in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab.errors import LoadError, ParameterError
from perflab.load import record_place as place_module
from perflab.load.record_place import file_problems, folder_problems, place
from perflab.load.workload import Burst, Request, Workload

WORK = Workload(request=Request(), arrivals=Burst(size=10))


def test_a_folder_must_be_new_or_empty_and_lie_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (empty := tmp_path / "empty").mkdir()
    assert folder_problems("--out", tmp_path / "new" / "below") == []
    assert folder_problems("--out", empty) == []
    for name in (tmp_path, tmp_path / "file"):
        assert "nothing is overwritten" in folder_problems("--out", name)[0]
    assert "is no folder" in folder_problems("--out", tmp_path / "file" / "below")[0]


def test_a_file_must_be_new_and_lie_in_a_folder(tmp_path: Path) -> None:
    assert file_problems("--csv", tmp_path / "new.csv") == []
    (tmp_path / "old.csv").write_text("x")
    assert "nothing is overwritten" in file_problems("--csv", tmp_path / "old.csv")[0]
    assert "is no folder" in file_problems("--csv", tmp_path / "no" / "new.csv")[0]


def test_a_place_without_a_record_is_removed_with_the_folders_made_for_it(tmp_path: Path) -> None:
    (kept := tmp_path / "kept").mkdir()
    with place(kept / "a" / "b", WORK) as here:
        assert here.folder.is_dir()
    with place(None, WORK) as nowhere:
        pass
    assert list(tmp_path.rglob("*")) == [kept]
    assert not nowhere.folder.exists()


def test_a_record_outlives_its_place_where_it_must_be_kept(tmp_path: Path) -> None:
    with place(tmp_path / "out", WORK) as here:
        (here.raw / "0").mkdir(parents=True)
        assert not here.has_rows()
        (here.raw / "0" / "requests.rows").write_bytes(b"x")
        assert here.has_rows()
    assert here.has_rows()


def test_a_disk_that_the_record_would_fill_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place_module, "LEAST_FREE_BYTES", 1 << 60)
    refused = pytest.raises(ParameterError, match="MiB free, the record may need")
    with refused, place(tmp_path / "out", WORK):
        raise AssertionError("nothing may begin")
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_made_is_told_in_a_sentence() -> None:
    with pytest.raises(LoadError, match="cannot write /proc/new"), place(Path("/proc/new"), WORK):
        raise AssertionError("nothing may begin")
