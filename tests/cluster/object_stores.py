"""Real stores that speak S3: the lab's own service, moto as a process and a gateway in Docker."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import fsspec
import pytest

from perflab.host.placing import placement
from perflab.stacks import leftovers
from perflab.stacks.choice import choose
from perflab.stacks.plan import Node, StackPlan
from perflab.stacks.residents import Residents

BUCKET = "results"
ENGINES = {"process": "moto", "docker": "gateway"}
# What a machine may have set, and would come before what is set here.
OTHERS = ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3")


@dataclass(frozen=True)
class ObjectStore:
    """A store with one bucket, and the keys that open it."""

    port: int
    secret: str = field(repr=False)

    @property
    def environment(self) -> dict[str, str]:
        """Return what a user sets, and what keeps the machine's own settings out of it."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "perflab",
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
            "AWS_CONFIG_FILE": "/nonexistent",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_MAX_ATTEMPTS": "1",
            "NO_PROXY": "127.0.0.1",
        }


def files() -> Any:
    """Return the store's file system, by the environment of this process."""
    return fsspec.filesystem("s3", skip_instance_cache=True)


def held(url: str) -> dict[str, bytes]:
    """Return all that lies below an address, by its place."""
    system = files()
    return {path: system.cat_file(path) for path in system.find(url)}


@contextmanager
def object_store(backend_name: str) -> Iterator[ObjectStore]:
    """Start a store of one backend; while it runs, this process has its keys."""
    node = Node(
        name="store", service="objectstore", placement="database",
        settings={"store": ENGINES[backend_name]},
    )  # fmt: skip
    stack = f"s3-{os.getpid()}-{backend_name}"
    residents = Residents(
        choose(backend_name), {"it": StackPlan(nodes=(node,))}, placement(), stack
    )
    residents.prepare()
    residents.start()
    try:
        residents.activate("it")
        assert residents.reported["it"]["store"]["engine"] == ENGINES[backend_name]
        launch = residents.instance("it", "store").launch
        served = ObjectStore(launch.port, launch.secret)
        with pytest.MonkeyPatch.context() as patch:
            for name in OTHERS:
                patch.delenv(name, raising=False)
            for name, value in served.environment.items():
                patch.setenv(name, value)
            files().mkdir(BUCKET)
            yield served
    finally:
        residents.stop()
    assert leftovers.everything() == []
