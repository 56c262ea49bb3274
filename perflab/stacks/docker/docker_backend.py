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
from perflab.stacks.backend import (
    COPY,
    HASTY_TIMEOUT_S,
    HOST,
    STOP_TIMEOUT_S,
    Labels,
    Launch,
    printed_by,
    read,
    refuse_failed_copy,
    rendered,
)
from perflab.stacks.cleanup import remove_volumes
from perflab.stacks.commands import (
    NO_WORK,
    Interrupted,
    Work,
    never,
    patiently,
)
from perflab.stacks.docker import images
from perflab.stacks.plan import CPU_PERIOD_US
from perflab.stacks.spec import ServiceSpec, render

SECRET_FILE = "/run/perflab-secret"
MAX_PROCESSES = 4096
# What the entrypoints of servers need that give their data to a user, and become that user.
OF_ENTRYPOINTS = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"]
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

    def stop(self, keep_data: bool = False, interrupted: Interrupted = never) -> bool:
        """Stop and remove the container and its volume; return whether it had to be killed."""
        self.resume()
        was_killed = False
        with contextlib.suppress(*NO_ANSWER):
            self._container.stop(timeout=int(HASTY_TIMEOUT_S if interrupted() else STOP_TIMEOUT_S))
            was_killed = "SIGKILL" in self.exit_reason()
        with contextlib.suppress(*NO_ANSWER):
            self._container.remove(force=True, v=True)
        if not keep_data:
            with contextlib.suppress(*NO_ANSWER):
                volume = _volume_name(self.launch.labels)
                self._container.client.volumes.get(volume).remove(force=True)
        return was_killed

    def exit_status(self) -> int | None:
        """Return the exit status of the container (a signal: negative); None while it runs."""
        self._container.reload()
        state = self._container.attrs["State"]
        if state["Running"] or state.get("Paused"):
            return None
        code = int(state["ExitCode"])
        # Docker, like a shell, adds 128 to the number of a signal.
        return 128 - code if code > 128 else code

    def exit_reason(self) -> str:
        """Return how the container ended, or an empty string while it runs."""
        try:
            code = self.exit_status()
        except NotFound:
            return "its container is gone"
        if code is None:
            return ""
        ended = f"its container {how_it_ended(code)}"
        if self._container.attrs["State"].get("OOMKilled"):
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
        # Ids of images by service: a tag may become that of another image during a run.
        self._images: dict[str, str] = {}
        self._versions: dict[str, dict[str, str]] = {}

    def prepare(self, spec: ServiceSpec, work: Work = NO_WORK) -> str:
        """Build the service's image unless it exists, and find out what is installed in it."""
        _, identity = images.ensure(self.client, spec, work)
        if self._images.get(spec.name) != identity:
            labels = read(work.labels, "environment").as_docker() if work.labels else {}
            self._versions[spec.name] = images.versions(self.client, spec, identity, labels)
        self._images[spec.name] = identity
        return identity

    def versions(self, spec: ServiceSpec) -> dict[str, str]:
        """Return the versions of what is installed in the service's image, by name."""
        return self._versions[spec.name]

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

    def copy_data(self, launch: Launch, stack: str, work: Work) -> None:
        """Copy the service's volume of another stack, in a container that ends with the copy."""
        labels, data = launch.labels, launch.spec.docker.data
        source = _volume_name(Labels(stack, labels.service, labels.kind))
        target = self._volume(launch)
        container = self.client.containers.create(
            self._images[launch.spec.name], [*COPY[1:], "/kept", data], entrypoint=COPY[0],
            volumes={source: {"bind": "/kept"}, target: {"bind": data}}, network_mode="none",
            cap_drop=["ALL"], labels=labels.as_docker(), use_config_proxy=False,
        )  # fmt: skip
        try:
            container.start()
            during = f"while the data of {labels.service} was copied"
            status = patiently(container.wait, work.interrupted, during)["StatusCode"]
            refuse_failed_copy(labels.service, status, container.logs().decode(errors="replace"))
        except BaseException:
            container.remove(force=True)
            self.client.volumes.get(target).remove(force=True)
            raise
        container.remove(force=True)

    def _volume(self, launch: Launch) -> str:
        """Make the volume of a service's data unless it exists, and return its name."""
        name = _volume_name(launch.labels)
        self.client.volumes.create(name=name, labels=launch.labels.as_docker())
        return name

    def start(self, launch: Launch) -> DockerInstance:
        """Create and start the container, on the host's network or with its port on loopback.

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
            options["volumes"] = {self._volume(launch): {"bind": part.data, "mode": "rw"}}
        if part.port:
            options |= {"ports": {f"{part.port}/tcp": (HOST, launch.port)}}
            options |= {"cap_add": OF_ENTRYPOINTS}
        else:
            options |= {"network_mode": "host", "user": f"{part.user}:{part.user}"}
        command = rendered(launch.command, values)
        if launch.is_setup:
            # It runs in place of the image's own program, and is no argument of it.
            options["entrypoint"], command = command[0], command[1:]
        instance: DockerInstance | None = None
        try:
            container = self.client.containers.create(
                self._images[launch.spec.name],
                command,
                name=f"perflab-{launch.labels.stack}-{launch.labels.service}",
                cap_drop=["ALL"],
                security_opt=["no-new-privileges"],
                pids_limit=MAX_PROCESSES,
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
                    self.client.volumes.get(_volume_name(launch.labels)).remove(force=True)
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


def _volume_name(labels: Labels) -> str:
    return f"perflab-{labels.stack}-{labels.service}"
