"""py-spy: the profiler of Python services."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import IO

import pandas as pd

from perflab.errors import ProfilerFailed
from perflab.recordings.collapsed import parse_collapsed
from perflab.sampling.profiler import ATTACH_TIMEOUT_S, Profiler

TOOL = "py-spy"
READY = "Sampling process"
MAX_LOST_SHARE = 0.02
# What a thread is in while it waits: for the event loop's sockets, for work, or for another thread.
_WAITING = re.compile(
    r"(?:^|;)(?:(?:\w+\.)?select \((?:\S*/)?selectors\.py\)"
    r"|(?:\w+\.)?wait \((?:\S*/)?threading\.py\)"
    r"|_worker \(\S*futures/thread\.py\))$"
)
IN_ANOTHER_NAMESPACE = (
    "the service has thread numbers of its own (a container): whether a thread runs cannot be "
    "seen, so samples that end in a call that waits are left out"
)
_COUNTED = re.compile(r"Samples: (\d+) Errors: (\d+)")
_BEHIND = re.compile(r"([\d.]+)s behind in sampling")


class PySpy(Profiler):
    """py-spy attached to a service's first process."""

    tool = TOOL

    def _begin(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        self._blind = numbers_threads_apart(self._pids[0])
        return super()._begin(log)

    def _command(self) -> list[str]:
        return [
            tool(), "record", "--pid", str(self._pids[0]), "--format", "raw", "--nolineno",
            "--rate", str(self._rate_hz), "--duration", str(self._bound_s),
            "--output", str(self._folder / "chains"),
        ]  # fmt: skip

    def _is_attached(self) -> bool:
        return READY in self._said()

    def _refusal(self, said: str) -> ProfilerFailed:
        return refusal(said)

    def _call_chains(self, said: str) -> pd.DataFrame:
        try:
            text = (self._folder / "chains").read_text(errors="replace")
        except FileNotFoundError:
            raise ProfilerFailed(f"{TOOL} left no call chains: {said}") from None
        self.warnings = doubts(said)
        chains = parse_collapsed(text)
        if not self._blind:
            return chains
        self.warnings = (*self.warnings, IN_ANOTHER_NAMESPACE)
        return without_waiting(chains)


def numbers_threads_apart(pid: int) -> bool:
    """Say whether a process lives in another namespace of process numbers.

    py-spy reads a thread's state by the number that Python knows; there it finds none, and takes
    every thread for running.
    """
    try:
        return Path(f"/proc/{pid}/ns/pid").readlink() != Path("/proc/self/ns/pid").readlink()
    except OSError:
        return False


def without_waiting(chains: pd.DataFrame) -> pd.DataFrame:
    """Return the call chains (chain, samples) whose innermost function is not one that waits."""
    waiting = chains["chain"].str.contains(_WAITING)
    return chains[~waiting].reset_index(drop=True)


def tool() -> str:
    """Return the path of py-spy, of this environment first.

    Raises
    ------
    ProfilerFailed
        It is not installed.
    """
    own = Path(sysconfig.get_path("scripts")) / TOOL
    found = str(own) if own.exists() else shutil.which(TOOL)
    if not found:
        raise ProfilerFailed(f"{TOOL} is not installed: run 'make setup', or take profiler=['off']")
    return found


def check_usable() -> None:
    """Find out before anything is started whether processes may be looked at here.

    Raises
    ------
    ProfilerFailed
        They may not, or py-spy is missing.
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


def refusal(said: str) -> ProfilerFailed:
    """Return the error for what py-spy said before it gave up, with the way out where known."""
    if "ermission" in said or "Operation not permitted" in said:
        return ProfilerFailed(
            f"{TOOL} may not look at the process (ptrace is not permitted). Way out: run as root, "
            "or 'sysctl kernel.yama.ptrace_scope=0', or in a container --cap-add SYS_PTRACE; "
            "profiler=['off'] does without"
        )
    return ProfilerFailed(f"{TOOL} could not begin: {said.strip() or 'it said nothing'}")


def doubts(said: str) -> tuple[str, ...]:
    """Return warnings for what py-spy tells of its own trouble."""
    warnings = []
    counted = _COUNTED.search(said)
    if counted:
        taken, lost = int(counted[1]), int(counted[2])
        if lost > MAX_LOST_SHARE * max(1, taken + lost):
            warnings.append(f"{TOOL} could not read {lost} of {taken + lost} call chains")
    behind = [float(found) for found in _BEHIND.findall(said)]
    if behind:
        warnings.append(
            f"{TOOL} was up to {max(behind):.2g} s late: its call chains are fewer than due"
        )
    return tuple(warnings)
