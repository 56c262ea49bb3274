"""Which Docker engine is used, and what of the user's configuration reaches a container."""

from __future__ import annotations

import hashlib
import json
import socket
import time
from pathlib import Path

import pytest

from perflab.errors import BackendUnavailable, ServiceFailed
from perflab.stacks.docker import images
from perflab.stacks.docker.engine import connect
from perflab.stacks.plan import Node, StackPlan
from perflab.stacks.spec import load_service
from tests.stacks.asking import residents_of, started


@pytest.fixture
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the folder of the docker command's configuration, which is empty."""
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.delenv("DOCKER_CONTEXT", raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    return tmp_path


def write_context(folder: Path, name: str, address: str) -> None:
    meta = folder / "contexts" / "meta" / hashlib.sha256(name.encode()).hexdigest()
    meta.mkdir(parents=True)
    content = {"Name": name, "Metadata": {}, "Endpoints": {"docker": {"Host": address}}}
    (meta / "meta.json").write_text(json.dumps(content))
    (folder / "config.json").write_text(json.dumps({"currentContext": name}))


def test_an_engine_that_accepts_and_never_answers_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "silent.sock"
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(path))
        silent.listen()
        monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
        began = time.monotonic()
        with pytest.raises(BackendUnavailable, match=f"answers at unix://{path} .*timed out"):
            connect()
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("address", ["ssh://bench@10.0.0.5", "tcp://10.0.0.5:2375"])
@pytest.mark.parametrize("by_context", [True, False])
def test_an_engine_that_may_be_elsewhere_is_refused_before_it_is_asked(
    configuration: Path, monkeypatch: pytest.MonkeyPatch, address: str, by_context: bool
) -> None:
    if by_context:
        write_context(configuration, "bench", address)
    else:
        monkeypatch.setenv("DOCKER_HOST", address)
    with pytest.raises(BackendUnavailable, match="may run on another machine") as refused:
        connect()
    assert address in str(refused.value)
    assert "--backend process" in str(refused.value)


def test_the_engine_of_the_docker_commands_context_is_asked(configuration: Path) -> None:
    write_context(configuration, "rootless", f"unix://{configuration}/rootless.sock")
    with pytest.raises(BackendUnavailable, match=r"answers at unix://.*/rootless\.sock"):
        connect()


@pytest.mark.slow
@pytest.mark.docker
def test_a_container_that_cannot_be_made_leaves_no_volume() -> None:
    plan = StackPlan(nodes=(Node(name="db", service="postgres"),))
    residents, client = residents_of("docker", {"it": plan}), connect()
    (resident,) = residents.residency.residents
    name = f"perflab-{residents.stack}-{resident.name}"
    taken = client.containers.create("debian:bookworm-slim", "true", name=name)
    try:
        with pytest.raises(ServiceFailed, match="already in use"):
            residents.start()
        assert [item for item in client.volumes.list() if item.name == name] == []
    finally:
        taken.remove(v=True)


@pytest.mark.slow
@pytest.mark.docker
def test_a_container_has_no_proxy_of_the_docker_commands_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxies = {"default": {"httpProxy": "http://127.0.0.1:9", "httpsProxy": "http://127.0.0.1:9"}}
    (tmp_path / "config.json").write_text(json.dumps({"proxies": proxies}))
    # Behind such a proxy an image could not be built.
    images.ensure(connect(), load_service("echo"))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    plan = StackPlan(nodes=(Node(name="echo", service="echo"),))
    with started("docker", {"it": plan}) as residents:
        assert connect().api._proxy_configs.http, "the configuration was read"
        pid = residents.instance("it", "echo").pid
        environment = Path(f"/proc/{pid}/environ").read_text()
    assert "proxy" not in environment.lower()
