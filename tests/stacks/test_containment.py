"""The rights of containers, and where passwords are visible; without an engine."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from perflab.stacks.backend import Labels, Launch
from perflab.stacks.commands import NO_WORK
from perflab.stacks.docker.docker_backend import MAX_PROCESSES, SECRET_FILE, DockerBackend
from perflab.stacks.process_backend import ProcessBackend, _write_secret
from perflab.stacks.spec import ServiceSpec, load_service, service_names
from perflab.systems.custom.needs import Image

SECRET = "correct-horse-battery"


def launch_of(spec: ServiceSpec, **limits: Any) -> Launch:
    return Launch(
        spec=spec,
        labels=Labels("test-1", spec.name, "run", 5000),
        settings=spec.with_defaults({}),
        needed=dict.fromkeys(spec.needs, 1),
        port=5000,
        control_port=5001,
        cores=(0,),
        secret=SECRET,
        **limits,
    )


def launched(name: str, **limits: Any) -> tuple[Mock, Launch]:
    """Start a service by a Docker client that notes its calls; return the call that creates it."""
    launch, engine = launch_of(load_service(name), **limits), Mock()
    backend = DockerBackend(engine)
    backend._images[name] = "image"
    backend.start(launch)
    return engine.containers.create, launch


def steps(create: Mock) -> list[str]:
    """Return what was done with a container once it was created."""
    return [name for name, *_ in create.return_value.method_calls]


@pytest.mark.parametrize("name", service_names())
def test_a_container_has_no_rights_that_its_service_does_not_need(name: str) -> None:
    options = launched(name)[0].call_args.kwargs
    assert options["cap_drop"] == ["ALL"]
    assert options["security_opt"] == ["no-new-privileges"]
    assert options["pids_limit"] == MAX_PROCESSES <= 4096
    assert 0 < options["mem_limit"] <= 8 << 30
    assert options["memswap_limit"] == options["mem_limit"], "swap would widen the limit"
    assert options["cpuset_cpus"] == "0"
    assert options["user"].partition(":")[0] not in ("", "0", "root")
    assert options["log_config"]["Config"]["max-size"] == "5m"
    assert options["use_config_proxy"] is False
    assert "privileged" not in options
    assert "cap_add" not in options
    assert "ports" not in options, "nothing is published"


def test_a_server_of_others_runs_beside_processes_with_one_port_on_loopback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine, backend = Mock(), ProcessBackend()
    monkeypatch.setattr("perflab.stacks.docker.engine.connect", lambda: engine)
    image = Image(image="docker.io/others/search:1", port=9200, env={"a.b": "{host}:{port}"})
    spec = ServiceSpec.model_validate({"name": "search", **image.description(9.0)})
    engine.images.get.return_value.id = "sha256:1"
    backend.prepare(spec)
    engine.images.get.assert_called_with(image.image)
    backend.start(launch_of(spec))
    assert backend.versions(spec) == {}
    assert engine.containers.create.call_args.args == ("sha256:1", [])
    options = engine.containers.create.call_args.kwargs
    assert options["ports"] == {"9200/tcp": ("127.0.0.1", 5000)}
    assert options["environment"] == {"a.b": "127.0.0.1:5000"}
    assert options["cap_drop"] == ["ALL"]
    assert options["cap_add"] == ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"]
    assert options["security_opt"] == ["no-new-privileges"]
    assert options["labels"]["perflab.stack"] == "test-1"
    assert not {"network_mode", "user", "privileged"} & options.keys()


@pytest.mark.promise
def test_a_tag_that_another_image_gets_during_a_run_changes_nothing() -> None:
    engine = Mock()
    backend, image = DockerBackend(engine), Image(image="shop:1", port=9200)
    spec = ServiceSpec.model_validate({"name": "shop", **image.description(9.0)})
    engine.images.get.return_value.id = "sha256:1"
    assert backend.prepare(spec) == "sha256:1"
    engine.images.get.return_value.id = "sha256:2"
    engine.containers.create.return_value.wait.return_value = {"StatusCode": 0}
    backend.copy_data(launch_of(spec), "kept", NO_WORK)
    backend.start(launch_of(spec))
    started_from = [call.args[0] for call in engine.containers.create.call_args_list]
    assert started_from == ["sha256:1"] * 2


def sent_file(create: Mock, launch: Launch) -> tuple[str, str]:
    """Return path and content of the one sent file, which only the service's user can read."""
    _, content_sent = create.return_value.put_archive.call_args.args
    with tarfile.open(fileobj=io.BytesIO(content_sent)) as archive:
        (entry,) = archive.getmembers()
        assert entry.mode == 0o600
        assert entry.uid == launch.spec.docker.user != 0
        content = archive.extractfile(entry)
        assert content is not None
        return f"/{entry.name}", content.read().decode()


def test_the_password_is_in_a_file_of_the_service_before_it_starts() -> None:
    create, launch = launched("postgres")
    assert steps(create) == ["put_archive", "start"]
    assert sent_file(create, launch) == (SECRET_FILE, SECRET)


@pytest.mark.parametrize("name", ["postgres", "link"])
@pytest.mark.promise
def test_the_password_is_nowhere_that_an_inspection_shows(name: str) -> None:
    create, launch = launched(name)
    assert SECRET not in str(create.call_args) + repr(launch)
    assert ("put_archive" in steps(create)) == launch.spec.takes_secret


def test_only_its_user_can_read_the_password_file_and_no_link_is_followed(
    tmp_path: Path,
) -> None:
    file, elsewhere = tmp_path / "secret", tmp_path / "elsewhere"
    elsewhere.write_text("mine")
    file.symlink_to(elsewhere)
    before = os.umask(0)
    try:
        _write_secret(file, SECRET, None)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.lstat().st_mode) == 0o600
    assert (file.read_text(), elsewhere.read_text()) == (SECRET, "mine")
