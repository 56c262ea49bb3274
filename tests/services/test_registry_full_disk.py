"""A disk that is full while the registry is filled: the real gateway on a disk of 4 MiB."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from dataclasses import replace

import pytest
from registering import PATH, download, refusal, serving, settings_for
from registry.population import Failed, Population, content_of, model_ids
from registry.settings import Settings
from registry.store.blocking import BlockingStore
from running import SECRET, Start, call, quiet_port, wait_until

from perflab.errors import BackendUnavailable
from perflab.stacks.backend import HOST, Launch
from perflab.stacks.docker_backend import DockerBackend
from perflab.stacks.labels import Labels
from perflab.stacks.spec import load_service

pytestmark = [pytest.mark.slow, pytest.mark.docker]
# The large model still finds a place beside what fills the disk; not all small ones do.
DISK_BYTES, FILLING_BYTES, LARGE_BYTES, MODELS = 4 * 1024 * 1024, 3_000_000, 1_000_000, 80


@pytest.fixture(scope="module")
def small_disk(own_places: object) -> Iterator[int]:  # noqa: ARG001
    """The port of a gateway whose files lie on a disk of 4 MiB; left out where no engine runs."""
    try:
        backend = DockerBackend.connect()
    except BackendUnavailable:
        if os.environ.get("PERFLAB_REQUIRE_DOCKER") == "1":
            raise
        pytest.skip("no Docker engine answers")
    spec = load_service("objectstore")
    backend.prepare(spec, lambda _: None)
    labels = Labels(f"services-{secrets.token_hex(4)}", spec.name, "run", quiet_port())
    launch = Launch(
        spec=spec,
        labels=labels,
        settings=spec.resolve({"store": "gateway"}),
        addresses={},
        port=labels.port,
        control_port=quiet_port(),
        cores=(0,),
        secret=SECRET,
    )
    # The backend takes a volume that is there already under its name, whatever it lies on.
    user = spec.docker.user
    backend.client.volumes.create(
        name=f"perflab-{labels.stack}-{labels.service}",
        labels=labels.as_docker(),
        driver_opts={
            "type": "tmpfs",
            "device": "tmpfs",
            "o": f"size={DISK_BYTES},uid={user},gid={user}",
        },
    )
    try:
        instance = backend.start(launch)
    except BaseException:
        backend.clear(labels.stack)
        raise
    try:
        wait_until(lambda: is_ready(launch.control_port), timeout_s=60)
        yield launch.port
    finally:
        instance.stop()


def is_ready(port: int) -> bool:
    try:
        return call(port, "GET", "/health").status == 200
    except OSError:
        return False


@pytest.fixture
def settings(started: Start, small_disk: int) -> Settings:
    metadata = started("objectstore", store="moto")
    return replace(settings_for(metadata), store_address=f"http://{HOST}:{small_disk}")


def test_a_full_disk_is_named_with_the_way_out_leaves_nothing_half_and_room_lets_it_go_on(
    settings: Settings,
) -> None:
    objects = BlockingStore(settings).objects
    objects.create_bucket(Bucket="else")
    objects.put_object(Bucket="else", Key="filling", Body=bytes(FILLING_BYTES))

    with pytest.raises(Failed, match=r"disk may be full\. Make room and start again"):
        fill(settings)
    with serving(replace(settings, handler="threads")) as registry:
        assert len(download(registry.port)[2]) == LARGE_BYTES
        before = kept_whole(registry.port)
        assert 1 <= len(before) < MODELS, "some were put, and not all"
        listed = objects.list_objects_v2(Bucket=settings.bucket)["Contents"]
        assert {each["Key"] for each in listed} == {path_of(model_id)[1:] for model_id in before}

        objects.delete_object(Bucket="else", Key="filling")
        assert fill(settings) == MODELS - len(before), "what is there stays"
        assert len(kept_whole(registry.port)) == MODELS


def fill(settings: Settings) -> int:
    return Population(settings, lambda _: None).run(MODELS, LARGE_BYTES)


def kept_whole(port: int) -> list[str]:
    """Return the models that are served; each is whole, and the others are unknown."""
    found = []
    for model_id in model_ids(MODELS):
        status, _, body = download(port, path_of(model_id))
        if status == 200:
            assert body == content_of(model_id, LARGE_BYTES)
            found.append(model_id)
        else:
            assert refusal(port, path_of(model_id))[:2] == (404, "unknown_model")
    return found


def path_of(model_id: str) -> str:
    return PATH.replace(next(iter(model_ids(1))), model_id)
