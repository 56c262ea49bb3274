"""The functions of a compiled service by samples: perf, attached to its processes.

perf samples by the kernel's clock (``cpu-clock``), which virtual machines have as well. Call chains
follow frame pointers: those of Go are whole, those of C, C++ and Rust as far as they were built
with them. Source: perf-record(1), perf-script(1).
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from perflab.errors import ProfilerFailed
from perflab.host.processes import busiest
from perflab.host.temporary_folders import temporary_folder
from perflab.instruments.py_spy import kill_group
from perflab.instruments.py_spy_profiles import Function

TOOL = "perf"
RATE_HZ = 997
ATTACH_TIMEOUT_S, END_TIMEOUT_S, POLL_EVERY_S = 15.0, 60.0, 0.02
FRAME = re.compile(r"^\s+[0-9a-f]+ (?P<function>.+) \((?P<file>[^()]*|\[[^()]*\])\)$")
UNKNOWN, KERNEL = "[unknown]", "[kernel"
STRIPPED = "the program, whose symbols are stripped,"
# What a build adds to a name of Rust's, and the crates and namespaces that come with a language.
OF_A_BUILD = re.compile(r"::h[0-9a-f]{16}$")
OF_A_LANGUAGE = re.compile(r"^<?(?:&(?:mut )?)?(?:alloc|core|std|__gnu_cxx|__rust\w*|rust_\w+)::")
# Go's own packages. Source: pkg.go.dev/std.
OF_GO = re.compile(
    r"^(?:archive|bufio|bytes|cmp|compress|container|context|crypto|database|debug|embed|encoding"
    r"|errors|expvar|flag|fmt|go|hash|html|image|index|internal|io|iter|log|maps|math|mime|net|os"
    r"|path|plugin|reflect|regexp|runtime|slices|sort|strconv|strings|structs|sync|syscall|testing"
    r"|text|time|type|unicode|unique|unsafe|vendor|weak)[/.]|^(?:gogo|memeqbody|cmpbody|_rt0_)"
)
PACKAGE = re.compile(r"[\w/]+")
GO_MARK = b"\xff Go buildinf:"
# A function and its file, the innermost first.
Chain = tuple[tuple[str, str], ...]


class PerfProfile:
    """perf at work on processes, as this host numbers them.

    perf ends itself after ``bound_s``, even when this process has died. Clean-up finds it by
    ``labels``.
    """

    def __init__(self, pids: Sequence[int], bound_s: float, labels: Mapping[str, str]) -> None:
        self._pids = pids
        self._bound_s = bound_s
        self._environment = {**os.environ, **labels}

    def begin(self) -> None:
        """Start perf and wait until it samples; ProfilerFailed where it is missing, or may not."""
        if shutil.which(TOOL) is None:
            raise ProfilerFailed(
                f"a program that is neither Python nor Node is profiled by {TOOL}, which is not "
                "installed: on Debian 'apt-get install linux-perf'"
            )
        self._folder = temporary_folder("profile")
        try:
            with (self._folder / "log").open("wb") as log:
                self._child = subprocess.Popen(
                    [
                        TOOL, "record", "--event", "cpu-clock", "--freq", str(RATE_HZ), "-g",
                        "--pid", ",".join(map(str, self._pids)), "--output", str(self._data), "--",
                        "sleep", f"{self._bound_s:.0f}",
                    ],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                    start_new_session=True, env=self._environment,
                )  # fmt: skip
            until = time.monotonic() + ATTACH_TIMEOUT_S
            # Its file begins when it is attached.
            while not (self._data.exists() and self._data.stat().st_size):
                if self._child.poll() is not None:
                    raise self._refused()
                if time.monotonic() > until:
                    raise ProfilerFailed(f"{TOOL} did not begin within {ATTACH_TIMEOUT_S:g} s")
                time.sleep(POLL_EVERY_S)
        except BaseException:
            self.end()
            raise

    def samples(self) -> tuple[Counter[Function], Counter[str]]:
        """End perf, and return the samples by function of one's own code, and by call chain.

        ProfilerFailed where it did not end in time, or the service is gone.
        """
        try:
            pid = busiest(self._pids)
            if pid is None:
                raise ProcessLookupError("all of its processes have ended")
            program, is_of_go = psutil.Process(pid).exe(), GO_MARK in read_program(pid)
        except (psutil.Error, OSError) as error:
            self.end()
            raise ProfilerFailed(f"the program is gone: {error}") from None
        text = self._text()
        return functions_of(text, program, go=is_of_go), call_chains(text)

    def _text(self) -> str:
        """End perf, and return the samples as ``perf script`` writes them."""
        try:
            self._child.send_signal(signal.SIGINT)
            self._child.wait(timeout=END_TIMEOUT_S)
            done = subprocess.run(
                [TOOL, "script", "--no-inline", "--fields", "ip,sym,dso", "-i", str(self._data)],
                capture_output=True, text=True, errors="replace", timeout=END_TIMEOUT_S,
                check=False, env=self._environment,
            )  # fmt: skip
            if done.returncode:
                raise ProfilerFailed(f"{TOOL} script failed: {done.stderr.strip()[:300]}")
            return done.stdout
        except subprocess.TimeoutExpired:
            raise ProfilerFailed(f"{TOOL} did not end within {END_TIMEOUT_S:g} s") from None
        finally:
            self.end()

    def end(self) -> None:
        """End perf by force if it runs, and remove its files."""
        if child := getattr(self, "_child", None):
            kill_group(child)
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _data(self) -> Path:
        return self._folder / "perf.data"

    def _refused(self) -> ProfilerFailed:
        output = (self._folder / "log").read_text(errors="replace").strip()
        if "ermission" in output or "perf_event_paranoid" in output:
            return ProfilerFailed(
                f"{TOOL} may not watch the process: run as root, or allow it by "
                "'sysctl kernel.perf_event_paranoid=1'"
            )
        return ProfilerFailed(f"{TOOL} could not begin: {output[:300] or 'it said nothing'}")


def read_program(pid: int) -> bytes:
    """Return the program that a process runs, of whichever container it is."""
    return Path(f"/proc/{pid}/exe").read_bytes()


def chains_of(text: str) -> Iterator[Chain]:
    """Yield the call chain of each sample of ``perf script``, without what a build adds."""
    for sample in text.split("\n\n"):
        frames = (FRAME.match(line) for line in sample.splitlines())
        chain = tuple(
            (OF_A_BUILD.sub("", frame["function"]), frame["file"]) for frame in frames if frame
        )
        if chain:
            yield chain


def call_chains(text: str) -> Counter[str]:
    """Return the samples by call chain: functions with their files, the outermost first."""
    return Counter(
        ";".join(f"{name} ({Path(file).name})".replace(";", ":") for name, file in reversed(chain))
        for chain in chains_of(text)
    )


def functions_of(text: str, program: str, *, go: bool) -> Counter[Function]:
    """Return the samples by function of the service's own code; no library is told.

    A sample counts for the innermost function of the ``program`` itself that is not of its
    language's library; where there is none, for the package or library that it lies in. What other
    packages brought into the program cannot be told from its own.
    """
    return Counter((_own_name(chain, program, go), "") for chain in chains_of(text))


def _own_name(chain: Chain, program: str, go: bool) -> str:
    of_a_language = OF_GO if go else OF_A_LANGUAGE
    for function, file in chain:
        if file == program and function != UNKNOWN and not of_a_language.match(function):
            return function
    function, file = next((each for each in chain if not each[1].startswith(KERNEL)), chain[0])
    if file.startswith(KERNEL):
        return "the kernel"
    if file == program and go and (package := PACKAGE.match(function)):
        return f"package {package[0]}"
    if file == program:
        return STRIPPED if function == UNKNOWN else function
    return f"library {Path(file).name}"
