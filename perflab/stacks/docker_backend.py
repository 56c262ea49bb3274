"""Services as containers: host network on 127.0.0.1, labels, cpusets, limits, no privileges."""

from __future__ import annotations

import contextlib
import io
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from docker.errors import APIError, DockerException, NotFound
from docker.types import Ulimit

from perflab.errors import ServiceFailed, StackError
from perflab.host.meters import CgroupMeter
from perflab.host.processes import how_it_ended
from perflab.stacks import images
from perflab.stacks.backend import (
    NO_WORK,
    Interrupted,
    Launch,
    Work,
    never,
    patiently,
    printed_by,
    read,
    rendered,
)
from perflab.stacks.cleanup import remove_volumes
from perflab.stacks.plan import CPU_PERIOD_US
from perflab.stacks.spec import ServiceSpec, render

SECRET_FILE = "/run/perflab-secret"
MAX_PROCESSES = 4096
# The most memory of a container, swap included: a leak must not take the machine with it.
MAX_MEMORY_MIB = 4096
MIB = 1024 * 1024
# The engine refuses, or does not answer: an end in order goes on with the next container.
NO_ANSWER = (DockerException, OSError)


@dataclass(eq=False, repr=False)
class DockerInstance:
    """One service as a container."""

    launch: Launch
    _container: Any
    _values: Mapping[str, object]

    def follow(self) -> str:
        """Return an empty string: no process leaves its container."""
        return ""

    def has_left(self) -> bool:
        """Return False: a container ends with its first process."""
        return False

    def pause(self) -> None:
        """Freeze the container."""
        with contextlib.suppress(*NO_ANSWER):
            self._container.pause()

    def resume(self) -> None:
        """Thaw the container."""
        with contextlib.suppress(*NO_ANSWER):
            self._container.unpause()

    def stop(self) -> bool:
        """Stop and remove the container and its volume; return whether it had to be killed."""
        self.resume()
        was_killed = False
        with contextlib.suppress(*NO_ANSWER):
            self._container.stop(timeout=8)
            was_killed = "SIGKILL" in self.exit_reason()
        with contextlib.suppress(*NO_ANSWER):
            self._container.remove(force=True, v=True)
        with contextlib.suppress(*NO_ANSWER):
            self._container.client.volumes.get(_volume_name(self.launch)).remove(force=True)
        return was_killed

    def exit_reason(self) -> str:
        """Return how the container ended, or an empty string while it runs."""
        try:
            self._container.reload()
        except NotFound:
            return "its container is gone"
        state = self._container.attrs["State"]
        if state["Running"] or state.get("Paused"):
            return ""
        code = int(state["ExitCode"])
        # Docker, like a shell, adds 128 to the number of a signal.
        ended = f"its container {how_it_ended(128 - code if code > 128 else code)}"
        if state.get("OOMKilled"):
            return f"{ended}: out of memory, killed at its limit of {MAX_MEMORY_MIB} MiB"
        return ended

    def log(self, lines: int = 30) -> str:
        """Return the container's last log lines."""
        try:
            return str(self._container.logs(tail=lines).decode(errors="replace"))
        except APIError:
            return ""

    def run(
        self, command: Sequence[str], timeout_s: float = 30.0, interrupted: Interrupted = never
    ) -> str:
        """Run a command inside the container; nothing ends a command that takes too long."""
        words = rendered(command, self._values)
        execute = partial(self._container.exec_run, words, demux=True)
        try:
            result = patiently(execute, interrupted, f"while '{words[0]}' ran", timeout_s)
        except TimeoutError:
            raise StackError(f"'{words[0]}' took longer than {timeout_s:g} s") from None
        except APIError as error:
            raise StackError(f"'{words[0]}' cannot run in the container: {error}") from None
        output, problems = (part.decode(errors="replace") if part else "" for part in result.output)
        return printed_by(words, result.exit_code, output, problems)

    @property
    def pid(self) -> int:
        """Return the id that the container's first process has outside of it."""
        self._container.reload()
        return int(self._container.attrs["State"]["Pid"])

    def meter(self) -> CgroupMeter:
        """Return the meter of the container's control group."""
        return CgroupMeter(self.pid)


class DockerBackend:
    """Starts services as containers."""

    name = "docker"
    network_path = "loopback through the host's network, no proxy"

    def __init__(self, client: Any) -> None:
        self.client = client
        self._tags: dict[str, str] = {}
        self._versions: dict[str, dict[str, str]] = {}

    def prepare(self, spec: ServiceSpec, work: Work = NO_WORK) -> str:
        """Build the service's image unless it exists, and find out what is installed in it."""
        tag, identity = images.ensure(self.client, spec, work)
        self._tags[spec.name] = tag
        if tag not in self._versions:
            labels = read(work.labels, "environment").as_docker() if work.labels else {}
            self._versions[tag] = images.versions(self.client, spec, tag, labels)
        return identity

    def versions(self, spec: ServiceSpec) -> dict[str, str]:
        """Return the versions of what is installed in the service's image, by name."""
        return self._versions.get(self._tags[spec.name], {})

    def clear(self, stack: str) -> None:
        """Remove the data that a crashed stack of this name left; it holds an old password."""
        remove_volumes(stack, self.client)

    def cpu_obstacle(self) -> str:
        """Return why the engine cannot limit CPU; empty if it can."""
        abilities = self.client.info()
        if abilities.get("CpuCfsPeriod") and abilities.get("CpuCfsQuota"):
            return ""
        return (
            "this Docker engine cannot limit CPU time; use an engine whose kernel has "
            "CONFIG_CFS_BANDWIDTH and the control group 'cpu', or leave cpus out"
        )

    def start(self, launch: Launch) -> DockerInstance:
        """Create and start the container on the host's network.

        Raises ServiceFailed where that fails; nothing of it stays.
        """
        part = launch.spec.docker
        values = launch.placeholders() | part.placeholders() | {"secret_file": SECRET_FILE}
        environment = {name: render(text, values) for name, text in launch.spec.environment.items()}
        options: dict[str, Any] = {}
        if (files := launch.max_files()) is not None:
            options["ulimits"] = [Ulimit(name="nofile", soft=files, hard=files)]
        if launch.cpus is not None:
            quota_us = round(launch.cpus * CPU_PERIOD_US)
            options |= {"cpu_period": CPU_PERIOD_US, "cpu_quota": quota_us}
        if part.data:
            volume = _volume_name(launch)
            self.client.volumes.create(name=volume, labels=launch.labels.as_docker())
            options["volumes"] = {volume: {"bind": part.data, "mode": "rw"}}
        instance: DockerInstance | None = None
        try:
            container = self.client.containers.create(
                self._tags[launch.spec.name],
                rendered(launch.spec.command, values),
                name=f"perflab-{launch.labels.stack}-{launch.labels.service}",
                user=f"{part.user}:{part.user}",
                cap_drop=["ALL"],
                security_opt=["no-new-privileges"],
                pids_limit=MAX_PROCESSES,
                network_mode="host",
                cpuset_cpus=",".join(map(str, launch.cores)),
                mem_limit=MAX_MEMORY_MIB * MIB,
                memswap_limit=MAX_MEMORY_MIB * MIB,
                environment=environment,
                labels=launch.labels.as_docker(),
                stop_signal=launch.spec.stop_signal,
                # A service has the environment that the lab wrote, and no proxy of the user's.
                use_config_proxy=False,
                log_config={"Type": "json-file", "Config": {"max-size": "5m"}},
                **options,
            )
            instance = DockerInstance(launch, container, values)
            try:
                # It goes in as a file: `docker inspect` shows environment, command and mounts.
                if launch.spec.takes_secret:
                    container.put_archive("/", _secret_archive(launch.secret, part.user))
                container.start()
            except BaseException:
                instance.stop()
                raise
        except APIError as error:
            if part.data and instance is None:
                with contextlib.suppress(APIError):
                    self.client.volumes.get(_volume_name(launch)).remove(force=True)
            raise ServiceFailed(
                launch.labels.service, f"its container cannot start: {error.explanation}"
            ) from None
        return instance


def _secret_archive(secret: str, user: int) -> bytes:
    """Return an archive with one file, which only the service's user can read."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        images.add_bytes(archive, SECRET_FILE.lstrip("/"), secret.encode(), user)
    return buffer.getvalue()


def _volume_name(launch: Launch) -> str:
    return f"perflab-{launch.labels.stack}-{launch.labels.service}"
