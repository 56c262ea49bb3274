"""Filling the registry: the same bytes everywhere, resumed, one at a time, and nothing half."""

from __future__ import annotations

import hashlib
import io
import zipfile
from contextlib import ExitStack
from pathlib import Path

import pytest
from registering import asking, download, populate, refusal, serving, settings_for
from registry import zips
from registry.population import LARGE, LARGE_BYTES, Failed, Population, model_ids
from running import Service, Start, call, told_inside

PUBLISHED_BYTES = 24_834_009
DIGEST = "e5efbead601599208bdd606881cbc71564b2d575ab77bed94e1c8b55c9b40b7a"
SECOND = "/performance/perflab_small-001/main/model.zip"


@pytest.fixture(scope="module")
def store(started: Start) -> Service:
    return started("objectstore", store="moto")


def test_the_large_model_is_a_valid_zip_of_the_published_length_and_always_the_same() -> None:
    assert LARGE_BYTES == PUBLISHED_BYTES
    made = zips.of_size(LARGE, LARGE_BYTES)
    assert len(made) == PUBLISHED_BYTES
    archive = zipfile.ZipFile(io.BytesIO(made))
    assert archive.testzip() is None
    assert archive.namelist() == ["config.json", "README.md", "model.safetensors"]
    assert hashlib.sha256(made).hexdigest() == DIGEST
    assert zips.of_size(LARGE, LARGE_BYTES // 10) != made[: LARGE_BYTES // 10]


@pytest.mark.parametrize("size", [0, 1, 400])
def test_a_zip_too_short_for_its_files_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"size = {size}"):
        zips.of_size(LARGE, size)


def test_the_others_are_small_and_each_is_different() -> None:
    names = list(model_ids(500))
    made = {zips.small(name) for name in names[1:]}
    assert (len(names), len(set(names)), len(made)) == (500, 500, 499)
    assert max(map(len, made)) < 2000


@pytest.mark.slow
def test_a_population_goes_on_where_another_ended(store: Service) -> None:
    settings = settings_for(store, bucket="resumed", table="resumed")
    told: list[str] = []
    assert Population(settings, told.append).run(3, 50_000) == 3
    assert told[-1] == "3 of 3 models, 3 of them new"
    assert Population(settings, told.append).run(5, 50_000) == 2
    assert Population(settings, told.append).run(5, 60_000) == 1, "the large one changed"
    with serving(settings) as registry:
        assert len(download(registry.port)[2]) == 60_000


@pytest.mark.slow
def test_an_object_without_its_row_is_not_there_and_put_again(store: Service) -> None:
    """A population that dies between the two leaves this; the other way round cannot be."""
    settings = settings_for(store, bucket="half", table="half")
    filled = Population(settings, lambda _: None)
    with serving(settings_for(store, bucket="half", table="half")) as registry:
        filled.run(2, 50_000)
        clients = registry.app.state.store
        row = {"model_id": {"S": "perflab_small-001"}, "version": {"S": "main"}}
        clients.database.delete_item(TableName="half", Key=row)
        assert refusal(registry.port, SECOND)[:2] == (404, "unknown_model")
        assert Population(settings, lambda _: None).run(2, 50_000) == 1
        assert download(registry.port, SECOND)[0] == 200
        clients.objects.delete_object(Bucket="half", Key=SECOND[1:])
        assert refusal(registry.port, SECOND)[:2] == (404, "unknown_model")
        assert Population(settings, lambda _: None).run(2, 50_000) == 1


@pytest.mark.slow
def test_of_two_populations_at_once_the_second_is_told_to_wait(store: Service) -> None:
    settings = settings_for(store, bucket="two", table="two")
    refused: list[str] = []

    def meanwhile(_: str) -> None:
        with pytest.raises(Failed, match="another population") as failure:
            Population(settings, lambda _: None).run(3, 50_000)
        refused.append(str(failure.value))

    assert Population(settings, meanwhile).run(3, 50_000) == 3
    assert refused
    assert Population(settings, lambda _: None).run(3, 50_000) == 0, "its lease went with it"


@pytest.mark.slow
def test_a_store_that_does_not_take_it_is_named_with_the_way_out(
    store: Service, tmp_path: Path
) -> None:
    wrong = tmp_path / "secret"
    wrong.write_text("wrong")
    settings = settings_for(store, secret_file=wrong)
    with pytest.raises(Failed, match="does not take these credentials"):
        Population(settings, lambda _: None).run(1, 50_000)
    down = settings_for(store, store_address="http://127.0.0.1:9")
    with pytest.raises(Failed, match="does not answer"):
        Population(down, lambda _: None).run(1, 50_000)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("--models 0", "--models must"),
        ("--size -5", "--size must"),
        ("--size 9e9", "invalid"),
    ],
)
def test_numbers_that_cannot_be_are_refused_before_anything_is_asked(asked: str, told: str) -> None:
    code = f"""
import json, subprocess, sys
done = subprocess.run([sys.executable, "-m", "registry.populate", *{asked.split()}],
                      capture_output=True, text=True)
print(json.dumps([done.returncode, done.stderr]))
"""
    status, error = told_inside("registry", code)
    assert status == 2
    assert told in error


@pytest.mark.slow
def test_readers_of_a_large_model_share_one_copy_of_it_in_the_store(store: Service) -> None:
    size = 20_000_000
    populate(store, 1, size)
    settings = settings_for(store, handler="executor", executor_threads=20, body="streamed")
    held, before = 12, rss(store)
    with serving(settings) as registry, ExitStack() as clients:
        for _ in range(held):
            clients.enter_context(asking(registry.port)).recv(1000)
        grown = rss(store) - before
    # Each with a copy of its own would be 240 MB.
    assert grown < held * size / 3


def rss(store: Service) -> int:
    return int(call(store.control_port, "GET", "/counts").body["rss_bytes"])
