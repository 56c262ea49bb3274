"""py-spy beside a load: a process that samples a Python service's call chains from outside.

The service runs unchanged, and no sample stops it: py-spy looks whether a thread runs before it
reads the thread's call chain, and a stop between the two lets a burst of work end. A chain is read
from the innermost function on; where it changes meanwhile, its outer functions are missing, and it
gets those of others (:mod:`~perflab.instruments.py_spy_profiles`). The experiment ``profile``
measures the cost.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import shutil
import signal
import subprocess
import sysconfig
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from perflab.errors import ProfilerFailed
from perflab.host.temporary_folders import temporary_folder
from perflab.instruments.py_spy_profiles import call_chains, without_waiting

TOOL = "py-spy"
READY = "Sampling process"
MAX_LOST_SHARE = 0.05
ATTACH_TIMEOUT_S = 15.0
END_TIMEOUT_S = 20.0
POLL_EVERY_S = 0.02
IN_ANOTHER_NAMESPACE = (
    "the service runs in a container, where py-spy cannot see whether a thread runs: samples that "
    "end in a call that waits are left out of all shares"
)
_COUNTED = re.compile(r"Samples: (\d+) Errors: (\d+)")
_BEHIND = re.compile(r"([\d.]+)s behind in sampling")


@dataclass(frozen=True)
class Profile:
    """The result of a profiler.

    ``chains`` (chain, samples) are the call chains of running threads, and ``text`` is what the
    profiler wrote of all. ``looks`` is the number of samples that were due.
    """

    chains: pd.DataFrame
    looks: int
    warnings: tuple[str, ...]
    text: str = field(repr=False)


class PySpy:
    """py-spy attached to a service, whose first process is ``pid`` as this host numbers it.

    The profiler ends itself after ``bound_s``, even when this process has died. Clean-up finds it
    by ``labels``. With ``children`` it samples the processes below the first one, too, and with
    ``waiting`` threads that wait.
    """

    def __init__(
        self,
        pid: int,
        rate_hz: int,
        bound_s: float,
        labels: Mapping[str, str],
        *,
        children: bool = False,
        waiting: bool = False,
    ) -> None:
        self._service_pid = pid
        self._rate_hz = rate_hz
        self._bound_s = math.ceil(bound_s)
        self._environment = {**os.environ, **labels}
        self._more = [*["--subprocesses"] * children, *["--idle"] * waiting]

    @property
    def pid(self) -> int:
        """Return the profiler's own process id."""
        return self._child.pid

    def begin(self) -> None:
        """Start the profiler and wait until it is attached.

        Raises ProfilerFailed where py-spy is missing, or may not or cannot read the process; it has
        ended then.
        """
        self._folder = temporary_folder("profile")
        try:
            self._blind = numbers_threads_apart(self._service_pid)
            self._child = self._started()
            self._wait_attached()
        except BaseException:
            self.end()
            raise

    def _started(self) -> subprocess.Popen[bytes]:
        command = [
            tool(), "record", "--pid", str(self._service_pid), "--format", "speedscope",
            "--nonblocking", "--nolineno", "--rate", str(self._rate_hz),
            "--duration", str(self._bound_s), "--output", str(self._folder / "profile"),
            *self._more,
        ]  # fmt: skip
        with (self._folder / "log").open("wb") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=self._environment,
            )

    def _wait_attached(self) -> None:
        deadline = time.monotonic() + ATTACH_TIMEOUT_S
        while READY not in self._output():
            if self._child.poll() is not None:
                raise refusal(self._output())
            if time.monotonic() > deadline:
                raise ProfilerFailed(
                    f"{TOOL} did not begin within {ATTACH_TIMEOUT_S:g} s: {self._output()}"
                )
            time.sleep(POLL_EVERY_S)
        self._attached_at = time.monotonic()

    def collect(self) -> Profile:
        """End the profiler in order, or else by force, and return its profile.

        Raises ProfilerFailed where it did not end in time, or left no call chains.
        """
        attached_s = min(time.monotonic() - self._attached_at, self._bound_s)
        try:
            self._child.send_signal(signal.SIGINT)
            self._child.wait(timeout=END_TIMEOUT_S)
            return self._profile(round(self._rate_hz * attached_s), self._output())
        except subprocess.TimeoutExpired:
            raise ProfilerFailed(f"{TOOL} did not end within {END_TIMEOUT_S:g} s") from None
        finally:
            self.end()

    def _profile(self, looks: int, output: str) -> Profile:
        try:
            text = (self._folder / "profile").read_text(errors="replace")
        except FileNotFoundError:
            raise ProfilerFailed(f"{TOOL} wrote no call chains: {output}") from None
        chains, warnings = call_chains(text), doubts(output)
        if self._blind:
            chains, warnings = without_waiting(chains), (*warnings, IN_ANOTHER_NAMESPACE)
        return Profile(chains, looks, warnings, text)

    def _output(self) -> str:
        return (self._folder / "log").read_text(errors="replace").strip()

    def end(self) -> None:
        """End the profiler by force if it runs, and remove its files."""
        if child := getattr(self, "_child", None):
            kill_group(child)
        shutil.rmtree(self._folder, ignore_errors=True)


def kill_group(profiler: subprocess.Popen[bytes]) -> None:
    """Kill a profiler that leads a group of processes, with all of them, if it still runs."""
    if profiler.poll() is None:
        # The kernel detaches a killed tracer, and the traced process goes on.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(profiler.pid, signal.SIGKILL)
        profiler.wait()


def numbers_threads_apart(pid: int) -> bool:
    """Tell whether a process lives in another namespace of process ids.

    py-spy reads a thread's state by the id that Python knows. In another namespace it finds no such
    thread, and counts every thread as running.
    """
    try:
        return Path(f"/proc/{pid}/ns/pid").readlink() != Path("/proc/self/ns/pid").readlink()
    except OSError:
        return False


def tool() -> str:
    """Return the path of py-spy, first that of this environment.

    Raises ProfilerFailed where it is not installed.
    """
    scripts = sysconfig.get_path("scripts")
    program = shutil.which(TOOL, path=scripts) or shutil.which(TOOL)
    if program is None:
        raise ProfilerFailed(
            f"{TOOL} is not installed: run 'make setup', or measure with profiler=['off']"
        )
    return program


def check_usable() -> None:
    """Check that py-spy may read processes here; before services start.

    Raises
    ------
    ProfilerFailed
        It may not, or py-spy is missing.
    """
    done = subprocess.run(
        [tool(), "dump", "--pid", str(os.getpid())],
        capture_output=True,
        text=True,
        timeout=ATTACH_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        raise refusal(done.stderr)


def refusal(output: str) -> ProfilerFailed:
    """Return the error for the output of a failed py-spy, with the way out where it is known."""
    if "ermission" in output or "Operation not permitted" in output:
        return ProfilerFailed(
            f"{TOOL} may not read the process (ptrace is not permitted). Run as root, or allow it "
            "by 'sysctl kernel.yama.ptrace_scope=0', in a container by --cap-add SYS_PTRACE; or "
            "measure without a profiler (profiler=['off'])"
        )
    return ProfilerFailed(
        f"{TOOL} could not begin; it can only read Python processes. Its output: "
        f"{output.strip() or 'none'}"
    )


def doubts(output: str) -> tuple[str, ...]:
    """Return warnings for the trouble that py-spy reports in its output."""
    warnings = []
    if counted := _COUNTED.search(output):
        taken, lost = int(counted[1]), int(counted[2])
        if lost > MAX_LOST_SHARE * max(1, taken + lost):
            warnings.append(f"{TOOL} could not read {lost} of {taken + lost} call chains")
    if behind := [float(seconds) for seconds in _BEHIND.findall(output)]:
        warnings.append(
            f"{TOOL} was up to {max(behind):.2g} s late: its call chains are fewer than due"
        )
    return tuple(warnings)
