"""The folder of a record is checked before a load; only a record is left in it.

Temporary folders of raw rows do not outlive their owners, and no others are touched.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NoReturn

import pandas as pd
import pytest

from perflab.errors import LoadError, ParameterError
from perflab.host.temporary_folders import OWNER, remove_abandoned, temporary_folder
from perflab.load import once
from perflab.load.once import send
from perflab.load.records import record as place_module
from perflab.load.records.columns import REQUESTS, ROW, frame
from perflab.load.records.message_record import FILE as MESSAGES
from perflab.load.records.record import folder_problems, place
from perflab.load.workers.generator import Generator
from perflab.load.workload import Burst, Request, Workload
from perflab.paths import project_root
from tests.load.processes import served
from tests.support.children import child

WORK = Workload(request=Request(), arrivals=Burst(size=10))


def test_a_folder_must_be_new_or_empty_and_lie_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (empty := tmp_path / "empty").mkdir()
    assert folder_problems("--out", tmp_path / "new" / "below") == []
    assert folder_problems("--out", empty) == []
    for name in (tmp_path, tmp_path / "file"):
        assert "nothing is overwritten" in folder_problems("--out", name)[0]
    assert "is no folder" in folder_problems("--out", tmp_path / "file" / "below")[0]


def test_a_place_without_a_record_is_removed_with_the_folders_made_for_it(tmp_path: Path) -> None:
    (kept := tmp_path / "kept").mkdir()
    with place(kept / "a" / "b", WORK) as here:
        assert here.folder.is_dir()
    with place(None, WORK) as nowhere:
        pass
    assert list(tmp_path.rglob("*")) == [kept]
    assert not nowhere.folder.exists()


def test_a_disk_that_the_record_would_fill_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place_module, "LEAST_FREE_BYTES", 1 << 60)
    refused = pytest.raises(ParameterError, match="MiB free, the record may need")
    with refused, place(tmp_path / "out", WORK):
        raise AssertionError("nothing may begin")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_reported_in_a_sentence() -> None:
    with pytest.raises(LoadError, match="cannot write /proc/new"), place(Path("/proc/new"), WORK):
        raise AssertionError("nothing may begin")


def test_a_load_that_no_worker_could_begin_leaves_no_folder(tmp_path: Path) -> None:
    script = tmp_path / "shop.py"
    script.write_text(UNBORN)
    words = {"users": 2, "script": f"{script}:Unborn", "out": str(tmp_path / "out")}
    for _ in range(2):
        with pytest.raises(LoadError, match="a load worker failed: ValueError: unborn"):
            send("http://127.0.0.1:1/", **words)
    assert not (tmp_path / "out").exists()


@pytest.mark.promise
def test_a_record_is_whole_where_a_worker_has_no_user(tmp_path: Path) -> None:
    script, out = tmp_path / "shop.py", tmp_path / "out"
    script.write_text(SHOPPER)
    with served("0.001") as port:
        words = {"users": 1, "script": f"{script}:Shopper", "duration": 0.3, "out": str(out)}
        summary = send(f"http://127.0.0.1:{port}/", workers=2, **words)
    assert summary.unwritten == ""
    names = pd.read_parquet(out / "requests.parquet")["template"]
    assert {*names} == {"the basket"}


@pytest.mark.promise
def test_messages_to_users_who_only_listen_are_kept_where_their_load_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*words: Any) -> NoReturn:
        (folder := words[-1] / "0").mkdir(parents=True)
        (folder / REQUESTS).touch()
        (folder / MESSAGES).write_bytes(b"one message")
        raise LoadError("a load worker died")

    monkeypatch.setattr(Generator, "run", fail)
    monkeypatch.setattr(once, "checked_answers", lambda *_: None)
    with pytest.raises(LoadError, match="died; the requests so far are kept in"):
        send("http://127.0.0.1:1/", users=1, out=str(tmp_path / "out"))
    assert len([*tmp_path.rglob(MESSAGES)]) == 1


SHOPPER = """
from perflab.load.users import User, action

class Shopper(User):
    @action
    async def buy(self):
        await self.get("/", name="the basket")
"""


def test_a_number_of_workers_below_0_is_refused() -> None:
    with pytest.raises(ParameterError, match="--workers -1 is negative"):
        send("http://127.0.0.1:1/", users=1, workers=-1)


UNBORN = """
from perflab.load.users import User, action

class Unborn(User):
    def __init__(self, *words):
        raise ValueError("unborn")
    @action
    async def ask(self):
        await self.get("/")
"""


OWNING = """
from perflab.host.temporary_folders import temporary_folder
print(temporary_folder("load"), flush=True)
import time; time.sleep(60)
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_a_load_removes_folders_of_killed_loads_and_none_of_running_ones(temporary: Path) -> None:
    with child(OWNING, cwd=project_root()):
        (used,) = temporary.iterdir()
        with child(OWNING, cwd=project_root()):
            (left,) = {*temporary.iterdir()} - {used}
            (left / "0").mkdir()
            (left / "0" / "requests.rows").write_bytes(b"x")
        new = temporary_folder("load")
        assert new.is_dir()
        assert {new, used} == set(temporary.iterdir())


@pytest.mark.promise
def test_what_a_killed_worker_left_on_a_full_disk_is_read(tmp_path: Path) -> None:
    """Part of a row, and names that it would have written at its end."""
    (tmp_path / REQUESTS).write_bytes(bytes(ROW.itemsize * 21 // 2))
    assert len(frame(tmp_path, 0)) == 10
    (tmp_path / REQUESTS).write_bytes(b"x")
    assert len(frame(tmp_path, 0)) == 0


def test_a_folder_that_a_message_named_outlives_its_owner(temporary: Path) -> None:
    with place(None, WORK) as here:
        (here.raw / "0").mkdir(parents=True)
        here.keep = True
    assert here.folder.is_dir()
    assert not (here.folder / OWNER).exists()
    remove_abandoned()
    assert {here.folder} == set(temporary.iterdir())
