"""py-spy beside a load: a process that looks at a Python service's call chains from outside.

The service runs unchanged; for each look it is stopped for a moment. What that costs is measured
by the experiment ``profile``, not assumed.

Profiles in speedscope's format, as py-spy writes them.

Source: https://www.speedscope.app/file-format-schema.json. A profile has one list of samples per
thread; each sample is a call chain, the outermost function first, of numbers of frames.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sysconfig
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from perflab.errors import ProfilerFailed
from perflab.host.files import temporary_folder

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_INSTALLED = re.compile(r".*/(?:site-packages|python3\.\d+)/")
# What is shown of a path outside of Python's own: the file and its package.
_PARTS_SHOWN = 2


def call_chains(text: str) -> pd.DataFrame:
    """Return chain and samples, one row per call chain of all threads, sorted by chain.

    Frames are written ``function (file)`` and joined by semicolons, the outermost first.

    Raises ProfilerFailed where the text is no profile of this kind.
    """
    try:
        whole = json.loads(text)
        names = [_name(frame) for frame in whole["shared"]["frames"]]
        counts = Counter(
            ";".join(names[place] for place in sample)
            for thread in whole["profiles"]
            for sample in thread["samples"]
            if sample
        )
    except (ValueError, LookupError, TypeError) as error:
        raise ProfilerFailed(f"what py-spy left is no speedscope profile: {error!r}") from None
    table = pd.DataFrame(sorted(counts.items()), columns=["chain", "samples"])
    return table.astype({"chain": str, "samples": "int64"})


def _name(frame: Mapping[str, Any]) -> str:
    """Return ``function (file)``; a semicolon would part frames."""
    file = _INSTALLED.sub("", str(frame.get("file") or ""))
    if file.startswith("/"):
        file = "/".join(file.strip("/").split("/")[-_PARTS_SHOWN:])
    return f"{frame['name']} ({file})".replace(";", ":")


def joined(profiles: Iterable[tuple[str, str]], name: str) -> str:
    """Return several profiles as one of that name, which speedscope opens.

    Each of them is what shall stand before the names of its threads, and its text.
    """
    frames: list[Any] = []
    threads: list[Any] = []
    for words, text in profiles:
        own = json.loads(text)
        for thread in own["profiles"]:
            samples = [[len(frames) + place for place in sample] for sample in thread["samples"]]
            threads.append({**thread, "name": f"{words}: {thread['name']}", "samples": samples})
        frames += own["shared"]["frames"]
    whole = {"$schema": SCHEMA, "name": name, "profiles": threads, "shared": {"frames": frames}}
    return json.dumps(whole)


TOOL = "py-spy"
READY = "Sampling process"
MAX_LOST_SHARE = 0.02
ATTACH_TIMEOUT_S = 15.0
END_TIMEOUT_S = 20.0
LOOK_EVERY_S = 0.02
# What a thread is in while it waits: for the event loop's sockets, for work, or for another thread.
_WAITING = re.compile(
    r"(?:^|;)(?:(?:\w+\.)?select \((?:\S*/)?selectors\.py\)"
    r"|(?:\w+\.)?wait \((?:\S*/)?threading\.py\)"
    r"|_worker \(\S*futures/thread\.py\))$"
)
IN_ANOTHER_NAMESPACE = (
    "the service has thread numbers of its own (a container): whether a thread runs cannot be "
    "seen, so samples that end in a call that waits are left out of all shares"
)
_COUNTED = re.compile(r"Samples: (\d+) Errors: (\d+)")
_BEHIND = re.compile(r"([\d.]+)s behind in sampling")


@dataclass(frozen=True)
class Profile:
    """What a profiler has seen.

    ``speedscope`` is the file that py-spy wrote; ``chains`` (chain, samples) are its call chains,
    of threads that ran. ``looks`` says how often it was due to look, whether it found a thread
    running or not: its rate times the time it was attached. ``warnings`` say what makes it less
    than whole.
    """

    speedscope: str
    chains: pd.DataFrame
    looks: int
    warnings: tuple[str, ...]


class PySpy:
    """py-spy attached to a service, of which ``pid`` is the first process as this host numbers it.

    The profiler ends itself after ``bound_s``, whatever becomes of us. ``labels`` are what clean-up
    finds it by.
    """

    def __init__(
        self, pid: int, rate_hz: int, bound_s: float, labels: Mapping[str, str] | None = None
    ) -> None:
        self._service_pid = pid
        self._rate_hz = rate_hz
        self._bound_s = math.ceil(bound_s)
        self._environment = {**os.environ, **(labels or {})}

    @property
    def pid(self) -> int:
        """Return the profiler's own process id."""
        return self._child.pid

    def begin(self) -> None:
        """Attach it.

        Raises ProfilerFailed where it is missing, may not look at the process, or cannot read it;
        it was ended.
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
            "--nolineno", "--rate", str(self._rate_hz), "--duration", str(self._bound_s),
            "--output", str(self._folder / "profile"),
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
        while READY not in self._said():
            if self._child.poll() is not None:
                raise refusal(self._said())
            if time.monotonic() > deadline:
                raise ProfilerFailed(
                    f"{TOOL} did not begin within {ATTACH_TIMEOUT_S:g} s: {self._said()}"
                )
            time.sleep(LOOK_EVERY_S)
        self._attached_at = time.monotonic()

    def collect(self) -> Profile:
        """End the profiler in order, or else by force, and return what it saw.

        Raises ProfilerFailed where it did not end in time, or left no call chains.
        """
        attached_s = min(time.monotonic() - self._attached_at, self._bound_s)
        try:
            self._child.send_signal(signal.SIGINT)
            self._child.wait(timeout=END_TIMEOUT_S)
            return self._profile(round(self._rate_hz * attached_s), self._said())
        except subprocess.TimeoutExpired:
            raise ProfilerFailed(f"{TOOL} did not end within {END_TIMEOUT_S:g} s") from None
        finally:
            self.end()

    def _profile(self, looks: int, said: str) -> Profile:
        try:
            text = (self._folder / "profile").read_text(errors="replace")
        except FileNotFoundError:
            raise ProfilerFailed(f"{TOOL} left no call chains: {said}") from None
        chains, warnings = call_chains(text), doubts(said)
        if self._blind:
            chains, warnings = without_waiting(chains), (*warnings, IN_ANOTHER_NAMESPACE)
        return Profile(text, chains, looks, warnings)

    def _said(self) -> str:
        return (self._folder / "log").read_text(errors="replace").strip()

    def end(self) -> None:
        """End it by force, where it runs."""
        child = getattr(self, "_child", None)
        if child is not None and child.poll() is None:
            # A tracer that is killed leaves its process running: the kernel detaches it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


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

    Raises ProfilerFailed where it is not installed.
    """
    own = sysconfig.get_path("scripts")
    program = shutil.which(TOOL, path=own) or shutil.which(TOOL)
    if program is None:
        raise ProfilerFailed(f"{TOOL} is not installed: run 'make setup', or take profiler=['off']")
    return program


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
    return ProfilerFailed(
        f"{TOOL} could not begin (it reads Python processes alone): "
        f"{said.strip() or 'it said nothing'}"
    )


def doubts(said: str) -> tuple[str, ...]:
    """Return warnings for what py-spy tells of its own trouble."""
    warnings = []
    if counted := _COUNTED.search(said):
        taken, lost = int(counted[1]), int(counted[2])
        if lost > MAX_LOST_SHARE * max(1, taken + lost):
            warnings.append(f"{TOOL} could not read {lost} of {taken + lost} call chains")
    if behind := [float(seconds) for seconds in _BEHIND.findall(said)]:
        warnings.append(
            f"{TOOL} was up to {max(behind):.2g} s late: its call chains are fewer than due"
        )
    return tuple(warnings)
