"""perf: the profiler of compiled services, where the kernel lets it look.

It samples the clock of the CPU (``cpu-clock``, which virtual machines without counters have too),
so that a sample is CPU time spent, as py-spy's are. Callers are found by frame pointers: compile
services with ``-g -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer``, or callers are skipped.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import IO

import pandas as pd

from perflab.errors import ProfilerFailed
from perflab.sampling.perf_script import fold, unknown_share
from perflab.sampling.profiler import ATTACH_TIMEOUT_S, Profiler

TOOL = "perf"
LOOK = ["-e", "cpu-clock", "--call-graph", "fp", "--no-buildid"]
SCRIPT_TIMEOUT_S = 60.0
MAX_UNKNOWN_SHARE = 0.1
PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
# Bits of CapEff: CAP_SYS_ADMIN and, since Linux 5.8, CAP_PERFMON.
MAY_LOOK = 1 << 21 | 1 << 38
_LOST = re.compile(r"lost (\d+) (?:chunks|samples|events)", re.IGNORECASE)
_FORBIDDEN = re.compile(r"[Pp]ermission|not permitted|Access to performance monitoring")
_MISSING = re.compile(r"Function not implemented|not supported|No such device")
WITHOUT = "profiler=['off'] does without"


class Perf(Profiler):
    """perf attached to all processes of a service, and to what they start."""

    tool = TOOL

    def _begin(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start perf; it answers the first line of its control pipe once it looks."""
        self._pipes: list[int] = []
        for path in (self._path("control"), self._path("answer")):
            os.mkfifo(path, 0o600)
            self._pipes.append(os.open(path, os.O_RDWR | os.O_NONBLOCK))
        os.write(self._pipes[0], b"enable\n")
        return super()._begin(log)

    def _command(self) -> list[str]:
        return [
            tool(), "record", *LOOK, "-F", str(self._rate_hz), "-o", str(self._path("data")),
            "--delay=-1", f"--control=fifo:{self._path('control')},{self._path('answer')}",
            "-p", ",".join(map(str, self._pids)), "--", "sleep", str(self._bound_s),
        ]  # fmt: skip

    def _path(self, name: str) -> Path:
        return self._folder / name

    def _is_attached(self) -> bool:
        try:
            return os.read(self._pipes[1], 64).startswith(b"ack")
        except BlockingIOError:
            return False

    def _refusal(self, said: str) -> ProfilerFailed:
        return refusal(said)

    def _call_chains(self, said: str) -> pd.DataFrame:
        command = [tool(), "script", "-i", str(self._path("data"))]
        command += ["--no-inline", "-F", "comm,ip,sym,dso"]
        try:
            done = subprocess.run(
                command, capture_output=True, timeout=SCRIPT_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise ProfilerFailed(f"{TOOL} script took longer than {SCRIPT_TIMEOUT_S:g} s") from None
        problem = done.stderr.decode(errors="replace").strip()
        if done.returncode:
            raise ProfilerFailed(f"{TOOL} left no call chains: {said} {problem}")
        chains = fold(done.stdout.decode(errors="replace"))
        self.warnings = doubts(f"{said}\n{problem}", unknown_share(chains), sees_kernel())
        return chains

    def _end(self) -> None:
        super()._end()
        while self._pipes:
            os.close(self._pipes.pop())


def tool() -> str:
    """Return the path of perf.

    Raises
    ------
    ProfilerFailed
        It is not installed.
    """
    found = shutil.which(TOOL)
    if not found:
        raise ProfilerFailed(
            f"{TOOL} is not installed, and a compiled service needs it: 'apt-get install "
            "linux-perf' on Debian, the package of linux-tools for the kernel elsewhere; "
            f"{WITHOUT}"
        )
    return found


def check_usable() -> None:
    """Find out before anything is started whether perf may look at processes here.

    Raises
    ------
    ProfilerFailed
        It may not, or is missing; the message names what forbids it, and the way out.
    """
    with tempfile.TemporaryDirectory(prefix="perflab-profile-") as folder:
        command = [tool(), "record", *LOOK, "-o", f"{folder}/data", "-p", str(os.getpid())]
        done = subprocess.run(
            [*command, "--", "true"],
            capture_output=True,
            text=True,
            timeout=ATTACH_TIMEOUT_S,
            check=False,
        )
    if done.returncode:
        raise refusal(done.stderr)


def refusal(said: str) -> ProfilerFailed:
    """Return the error for what perf said before it gave up, with the way out where known."""
    if _FORBIDDEN.search(said):
        return ProfilerFailed(
            f"{TOOL} may not look at the process (kernel.perf_event_paranoid is {paranoid()}, "
            f"CAP_PERFMON is {'' if has_capability() else 'not '}held). Way out: run as root, or "
            "'sysctl kernel.perf_event_paranoid=2' for processes of one's own, or in a container "
            f"--cap-add PERFMON with a seccomp profile that allows perf_event_open; {WITHOUT}"
        )
    if _MISSING.search(said):
        return ProfilerFailed(
            f"this kernel, or the sandbox around it, gives {TOOL} no clock to sample; {WITHOUT}. "
            f"It said: {said.strip()}"
        )
    return ProfilerFailed(f"{TOOL} could not begin: {said.strip() or 'it said nothing'}")


def doubts(said: str, unknown: float, with_kernel: bool) -> tuple[str, ...]:
    """Return warnings: for samples that were lost, functions without a name, and no kernel."""
    warnings = []
    lost = sum(int(count) for count in _LOST.findall(said))
    if lost:
        warnings.append(f"{TOOL} lost {lost} pieces of what it saw: its call chains are fewer")
    if unknown > MAX_UNKNOWN_SHARE:
        warnings.append(
            f"{unknown:.0%} of the samples hold a function without a name: compile the service "
            "with -g -fno-omit-frame-pointer, and do not strip it"
        )
    if not with_kernel:
        warnings.append(
            f"the kernel's own functions are not seen (kernel.perf_event_paranoid is {paranoid()}):"
            " their time is left out"
        )
    return tuple(warnings)


def sees_kernel() -> bool:
    """Say whether perf may sample the kernel for this user."""
    return has_capability() or paranoid() <= 1


def has_capability() -> bool:
    """Say whether this process may sample others whatever the kernel's setting."""
    status = Path("/proc/self/status").read_text()
    effective = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective.split()[1], 16) & MAY_LOOK)


def paranoid() -> int:
    """Return what the kernel lets users sample (perf_event_open(2)): 2 and less their own."""
    try:
        return int(PARANOID.read_text())
    except OSError:
        return 4  # a kernel without perf_event_open
