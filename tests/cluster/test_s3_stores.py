"""S3 as a store of sweeps: moto as a process, a real gateway in Docker."""

from __future__ import annotations

import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from perflab.cluster.published_files import MARKER
from perflab.cluster.store import Store
from perflab.errors import StoreError
from tests.cluster.object_stores import BUCKET, ObjectStore, files, held, object_store

pytestmark = pytest.mark.slow
# The least that S3 takes as a part. What is twice as large comes in parts, put together at the end.
PART_BYTES = 5 * 1024 * 1024
KILLED = """
import os, signal, sys
from pathlib import Path
from perflab.cluster.store import Store

store = Store(sys.argv[1])
put = store._system.put_file

def until_the_second(path, *words, **options):
    if path.endswith("two.parquet"):
        os.kill(os.getpid(), signal.SIGKILL)
    put(path, *words, **options)

store._system.put_file = until_the_second
store.publish(Path(sys.argv[2]), "runs/some")
"""


@pytest.fixture(scope="module")
def served(backend_name: str, own_places: Path) -> Iterator[ObjectStore]:  # noqa: ARG001
    with object_store(backend_name) as made:
        yield made


@pytest.fixture
def store(served: ObjectStore) -> Store:  # noqa: ARG001
    return Store(f"s3://{BUCKET}/{secrets.token_hex(4)}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "run"
    (made / "trials").mkdir(parents=True)
    (made / "run.json").write_text("{}")
    (made / "trials" / "one.parquet").write_bytes(secrets.token_bytes(6_000_000))
    (made / "trials" / "two.parquet").write_bytes(b"")
    return made


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_what_is_published_is_fetched_as_it_was(store: Store, folder: Path, tmp_path: Path) -> None:
    store.check_writable()
    assert files().find(store.url) == []
    assert store.publish(folder, "runs/some") == f"{store.url}/runs/some"
    assert store.names("runs") == ["some"]
    store.fetch("runs/some", tmp_path / "here" / "some")
    assert contents(tmp_path / "here" / "some") == contents(folder)
    # Once more is no news, also for another host.
    assert Store(store.url).publish(folder, "runs/some") == f"{store.url}/runs/some"


def test_a_host_that_is_killed_has_published_nothing_and_its_next_try_all(
    store: Store, folder: Path, tmp_path: Path
) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, store.url, str(folder)], timeout=60, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    there = {path.rpartition("/")[2] for path in files().find(store.url)}
    assert there == {"run.json", "one.parquet"}
    assert store.names("runs") == []
    assert store.published("runs/some") is None

    store.publish(folder, "runs/some")
    store.fetch("runs/some", tmp_path / "here")
    assert contents(tmp_path / "here") == contents(folder)


def test_of_two_hosts_one_wins_and_the_other_is_told(
    store: Store, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = Store(store.url)
    first_put = store._system.pipe_file
    before = contents(folder)

    def overtaken(*words: object, **options: object) -> None:
        # All files of the first are there; the second has one more, and its marker comes first.
        (folder / "more").write_text("of the second")
        second.publish(folder, "runs/some")
        first_put(*words, **options)

    monkeypatch.setattr(store._system, "pipe_file", overtaken)
    with pytest.raises(StoreError, match="has something else as runs/some"):
        store.publish(folder, "runs/some")
    store.fetch("runs/some", tmp_path / "here")
    assert contents(tmp_path / "here") == {**before, "more": b"of the second"}


def test_nothing_that_is_there_is_overwritten(store: Store, folder: Path) -> None:
    store.publish(folder, "runs/some")
    before = held(store.url)
    (folder / "run.json").write_text("other")
    with pytest.raises(StoreError, match="has something else as runs/some"):
        store.publish(folder, "runs/some")
    # The same where only the marker of the first is not there yet.
    files().rm_file(f"{store.url}/runs/some/{MARKER}")
    with pytest.raises(StoreError, match=r"run.json: is something else, which another host"):
        store.publish(folder, "runs/some")
    assert held(store.url) == {
        path: content for path, content in before.items() if not path.endswith(MARKER)
    }


def test_a_file_of_many_parts_is_not_overwritten_either(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_parts = partial(store._system.put_file, chunksize=PART_BYTES)
    monkeypatch.setattr(store._system, "put_file", in_parts)
    folder = tmp_path / "run"
    folder.mkdir()
    with (folder / "large").open("wb") as file:
        file.truncate(2 * PART_BYTES + 1)
    store.publish(folder, "runs/some")
    files().rm_file(f"{store.url}/runs/some/{MARKER}")
    with (folder / "large").open("r+b") as file:
        file.write(b"other")
    with pytest.raises(StoreError, match="large: is something else"):
        store.publish(folder, "runs/some")
    assert files().cat_file(f"{store.url}/runs/some/large", start=0, end=5) == bytes(5)


def test_a_file_that_was_changed_is_found_by_its_digest(
    store: Store, folder: Path, tmp_path: Path
) -> None:
    store.publish(folder, "runs/some")
    files().pipe_file(f"{store.url}/runs/some/trials/one.parquet", b"other")
    with pytest.raises(StoreError, match=r"trials/one.parquet is not what was published"):
        store.fetch("runs/some", tmp_path / "here" / "some")
    assert list((tmp_path / "here").iterdir()) == []


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "nobody-gave-this"}, "ignature"),
        ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "redentials"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "Could not connect"),
    ],
    ids=["wrong key", "no key", "nobody there"],
)
def test_a_store_that_cannot_be_used_is_told_in_one_sentence_with_a_way_out(
    served: ObjectStore,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    why: str,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StoreError, match=why) as refused:
        Store(f"s3://{BUCKET}/place").check_writable()
    told = str(refused.value)
    assert "\n" not in told
    assert "Way out: make the bucket if there is none, and check AWS_ENDPOINT_URL" in told
    assert served.secret not in told
    assert "nobody-gave-this" not in told


def test_a_bucket_that_is_not_there_is_told(served: ObjectStore) -> None:  # noqa: ARG001
    with pytest.raises(StoreError, match=r"bucket does not exist.*make the bucket"):
        Store("s3://nowhere/place").check_writable()
    assert not files().exists("s3://nowhere")
