"""py-spy beside a load: a process that samples a Python service's call chains from outside.

The service runs unchanged, and no sample stops it: py-spy looks whether a thread runs before it
reads the thread's call chain, and a stop between the two lets a burst of work end. A chain is read
from the innermost function on; where it changes meanwhile, its outer functions are missing, or are
those of another moment. The experiment ``profile`` measures the cost.

py-spy writes profiles in speedscope's format. A profile has one list of samples per thread; each
sample is a call chain of numbers of frames, the outermost function first.
Source: https://www.speedscope.app/file-format-schema.json.
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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from perflab.errors import ProfilerFailed
from perflab.host.temporary_folders import temporary_folder

_INSTALLED = re.compile(r".*/(?:(?:site|dist)-packages|python3\.\d+)/")
_THREAD = re.compile(r"\bThread (\d+)")
_PART = re.compile(r"(?:(?:\.<locals>)?\.?<(?!locals)\w+>)+$")
# A path outside of Python's own folders is shown by its last parts: the package and the file.
_PARTS_SHOWN = 2
TOOL = "py-spy"
READY = "Sampling process"
MAX_LOST_SHARE = 0.05
ATTACH_TIMEOUT_S = 15.0
END_TIMEOUT_S = 20.0
POLL_EVERY_S = 0.02
# The innermost function of a thread that waits: for sockets, for work, or for another thread.
_WAITING = re.compile(
    r"(?:^|;)(?:(?:\w+\.)?select \((?:\S*/)?selectors\.py\)"
    r"|(?:\w+\.)?wait \((?:\S*/)?threading\.py\)"
    r"|(?:\w+\.)?(?:readinto|accept) \((?:\S*/)?socket\.py\)"
    r"|_worker \(\S*futures/thread\.py\))$"
)
IN_ANOTHER_NAMESPACE = (
    "the service runs in a container, where py-spy cannot see whether a thread runs: samples that "
    "end in a call that waits are left out of all shares"
)
_COUNTED = re.compile(r"Samples: (\d+) Errors: (\d+)")
# A function of one's own code, or a module where there is none, and the library below it.
Function = tuple[str, str]
# Its number, the samples of it at work, and those of its waits.
_Thread = tuple[int, Counter[Function], Counter[Function]]
_BEHIND = re.compile(r"([\d.]+)s behind in sampling")


def call_chains(text: str) -> pd.DataFrame:
    """Return a table (chain, samples), one row per call chain of all threads, sorted by chain.

    Frames are written ``function (file)`` and joined by semicolons, the outermost first.

    Raises ProfilerFailed where the text is no profile of this kind.
    """
    try:
        document = json.loads(text)
        # A frame without a file stands for a whole process.
        names = [
            _name(frame) if frame.get("file") else "" for frame in document["shared"]["frames"]
        ]
        counts = Counter(
            ";".join(filter(None, (names[place] for place in sample)))
            for thread in document["profiles"]
            for sample in thread["samples"]
            if sample
        )
        counts.pop("", None)
    except (ValueError, LookupError, TypeError) as error:
        raise ProfilerFailed(
            f"the file that py-spy wrote is no speedscope profile: {error!r}"
        ) from None
    table = pd.DataFrame(sorted(counts.items()), columns=["chain", "samples"])
    return table.astype({"chain": str, "samples": "int64"})


def _name(frame: Mapping[str, Any]) -> str:
    """Return ``function (file)`` without semicolons, which separate frames."""
    file = _INSTALLED.sub("", str(frame.get("file") or ""))
    if file.startswith("/"):
        file = "/".join(file.strip("/").split("/")[-_PARTS_SHOWN:])
    return f"{frame['name']} ({file})".replace(";", ":")


def own_functions(
    text: str,
    folder: str,
    *,
    waiting: bool = False,
    ran_ns: Mapping[int, int] = MappingProxyType({}),
) -> Counter[Function]:
    """Return the samples of a profile by function of the service's own code, and library.

    The library is the installed or Python's own package in which a sample ends, below the function
    ('': in none).

    A sample counts for the innermost function of a file that is neither Python's nor installed;
    where there is none, for the installed module. Threads that wait, and what stands for a whole
    process, count for nothing. Files are named from ``folder`` on, so that copies of a function in
    two folders have one name. With ``waiting``, threads that wait count, too, but only those that
    are in one's own code: the others wait for work.

    A thread that is ready to run is sampled as well as one that runs. So the samples of a thread of
    which ``ran_ns`` has the time on a core count in proportion to it.
    """
    document = json.loads(text)
    frames = document["shared"]["frames"]
    threads: list[_Thread] = []
    for thread in document["profiles"]:
        working: Counter[Function] = Counter()
        idle: Counter[Function] = Counter()
        for sample in thread["samples"]:
            chain = [frames[place] for place in sample if frames[place].get("file")]
            own = _own_function(chain, folder)
            if waiting and own:
                working[own, ""] += 1
            elif chain and not waiting:
                waits = _WAITING.search(_name(chain[-1]))
                end = _module(chain[-1])
                seen = (own, end) if own else (f"module {end or _file_name(chain[-1])}", "")
                (idle if waits else working)[seen] += 1
        number = _THREAD.search(str(thread.get("name")))
        threads.append((int(number[1]) if number else 0, working, idle))
    return _by_time_on_cores(threads, ran_ns)


def _by_time_on_cores(threads: Sequence[_Thread], ran_ns: Mapping[int, int]) -> Counter[Function]:
    """Return the samples of all threads; those with a known time share theirs by it.

    A thread that was only seen to wait has run nevertheless, where its time says so. One that began
    and ended meanwhile has no time, and keeps the samples in which it did not wait.
    """
    by_function: dict[Function, float] = {}
    timed = [each for each in threads if each[0] in ran_ns and (each[1] or each[2])]
    spent_ns = sum(ran_ns[number] for number, _, _ in timed)
    total = sum(working.total() for _, working, _ in timed)
    for number, working, idle in timed if spent_ns else ():
        seen = working or idle
        weight = total * ran_ns[number] / spent_ns / seen.total()
        for name, count in seen.items():
            by_function[name] = by_function.get(name, 0.0) + weight * count
    for number, working, _ in threads:
        for name, count in () if spent_ns and number in ran_ns else working.items():
            by_function[name] = by_function.get(name, 0.0) + count
    return _rounded(by_function)


def _rounded(counts: Mapping[Function, float]) -> Counter[Function]:
    """Return whole numbers with the same sum; what one loses goes to the next in order."""
    names, whole = sorted(counts), 0
    rounded: Counter[Function] = Counter()
    for name, until in zip(names, accumulate(counts[name] for name in names), strict=True):
        rounded[name], whole = round(until) - whole, round(until)
    return +rounded


def _own_function(chain: list[dict[str, Any]], folder: str) -> str:
    """Return the innermost function of one's own code, or nothing."""
    for frame in reversed(chain):
        # Comprehensions and lambdas are parts of the function around them.
        file, name = str(frame["file"]), _PART.sub("", str(frame["name"]))
        if name and file.startswith("/") and not _INSTALLED.match(file):
            place = Path(file)
            inside = place.is_relative_to(folder)
            return f"{name} ({place.relative_to(folder) if inside else place.name})"
    return ""


def _module(frame: Mapping[str, Any]) -> str:
    """Return the package, or the module, of a frame; nothing where it is not installed."""
    place, installed = _INSTALLED.subn("", str(frame["file"]))
    return Path(place).parts[0].removesuffix(".py") if installed else ""


def _file_name(frame: Mapping[str, Any]) -> str:
    return Path(str(frame["file"])).name.removesuffix(".py")


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


def without_waiting(chains: pd.DataFrame) -> pd.DataFrame:
    """Return the call chains (chain, samples) whose innermost function does not wait."""
    waiting = chains["chain"].str.contains(_WAITING)
    return chains[~waiting].reset_index(drop=True)


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
