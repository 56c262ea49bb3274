"""Hosts of a test's own: network namespaces that a bridge joins, with addresses for benchmarks.

The addresses are of 198.18.0.0/15, which is set aside for tests of network devices (RFC 2544). One
host has, where the kernel lets it, another CLOCK_MONOTONIC: a time namespace of its own.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from perflab.host.lock import holder
from tests.cluster.hosts import DASK
from tests.sweeps.swept import PERFLAB, read_until

AHEAD_S = 100_000
SERVER = Path(__file__).parents[1] / "load" / "server.py"
HEAD = "head"


def done(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


class LoadHost:
    """A worker that poses as a host: with an address, a lock and folders of its own."""

    def __init__(self, network: Network, name: str, is_ahead: bool) -> None:
        self.is_ahead = is_ahead
        self.folder = network.folder / name
        self.lock = self.folder / "lock"
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir(parents=True)
        command = [PERFLAB, "worker", network.scheduler, "--listen", network.address(name)]
        if is_ahead:
            apart = ["unshare", "-T", "--monotonic", str(AHEAD_S), "--fork", "--kill-child"]
            command = [*apart, *command]
        places = {
            "PERFLAB_HOST": name, "PERFLAB_LOCK": str(self.lock), "TMPDIR": str(self.temporary),
            "PERFLAB_STATE": str(self.folder / "state"),
        }  # fmt: skip
        started = network.started(name, command, places, f"worker {name} at")
        forked = psutil.Process(started.pid).children() if is_ahead else []
        self.worker = forked[0] if forked else psutil.Process(started.pid)

    def left(self) -> list[str]:
        """Return what there is of a load on this host."""
        found = [f"process {child.pid}" for child in self.worker.children(recursive=True)]
        found += [path.name for path in self.temporary.glob("perflab-load-*")]
        return [*found, "its lock"] if holder(self.lock) else found

    def is_sending(self) -> bool:
        """Return whether its load workers have recorded a request."""
        files = self.temporary.glob("perflab-load-*/*/requests.rows")
        return any(file.stat().st_size for file in files)


class Network:
    """Namespaces by name, the first of which has the bridge, the scheduler and a server."""

    def __init__(self, folder: Path, names: list[str]) -> None:
        self.folder = folder
        self._mark = f"perflab-{secrets.token_hex(4)}"
        self._names = [HEAD, *names]
        self._made: list[str] = []
        self._children: list[subprocess.Popen[str]] = []
        self._log = (folder / "log").open("w")
        self.scheduler = ""

    def _space(self, name: str) -> str:
        return f"{self._mark}-{name}"

    def address(self, name: str) -> str:
        return f"198.18.0.{1 + self._names.index(name)}"

    def lay(self) -> None:
        """Make namespaces and bridge; nothing outside of them is changed."""
        for name in self._names:
            done("ip", "netns", "add", self._space(name))
            self._made.append(name)
            done("ip", "-n", self._space(name), "link", "set", "lo", "up")
        head = self._space(HEAD)
        done("ip", "-n", head, "link", "add", "bridge", "type", "bridge")
        self._up(HEAD, "bridge")
        for number, name in enumerate(self._names[1:]):
            port = f"port{number}"
            done("ip", "-n", head, "link", "add", port, "type", "veth",
                 "peer", "name", "wire", "netns", self._space(name))  # fmt: skip
            done("ip", "-n", head, "link", "set", port, "master", "bridge", "up")
            self._up(name, "wire")

    def _up(self, name: str, device: str) -> None:
        space = self._space(name)
        done("ip", "-n", space, "address", "add", f"{self.address(name)}/24", "dev", device)
        done("ip", "-n", space, "link", "set", device, "up")

    def begun(
        self, name: str, command: list[str], environment: dict[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Begin a command in a namespace; it stays the child's own process."""
        inside = ["nsenter", f"--net=/run/netns/{self._space(name)}", "--"]
        child = subprocess.Popen(
            [*inside, *command], stdout=subprocess.PIPE, stderr=self._log, text=True,
            env={**os.environ, **(environment or {})}, start_new_session=True,
        )  # fmt: skip
        self._children.append(child)
        return child

    def started(
        self, name: str, command: list[str], environment: dict[str, str], text: str
    ) -> subprocess.Popen[str]:
        child = self.begun(name, command, environment)
        read_until(child, text)
        return child

    def schedule(self) -> None:
        """Start the scheduler."""
        self.scheduler = f"tcp://{self.address(HEAD)}:8786"
        words = ["--host", self.address(HEAD), "--port", "8786", "--no-dashboard"]
        allowed = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
        self.begun(HEAD, [DASK, "scheduler", *words], allowed)

    def serve(self, delay_s: float = 0.002, mode: str = "good") -> str:
        """Start a server and return its address."""
        words = [str(SERVER), str(delay_s), mode, "ok", self.address(HEAD)]
        child = self.begun(HEAD, [sys.executable, *words])
        assert child.stdout is not None
        return f"http://{self.address(HEAD)}:{int(child.stdout.readline())}/"

    def load(self, name: str, url: str, *words: str) -> subprocess.Popen[str]:
        """Begin a load from all workers, asked for in a namespace."""
        asked = [PERFLAB, "load", url, "--scheduler", self.scheduler, *words]
        return self.begun(name, [*asked, "--allow-target", self.address(HEAD)])

    def told(self) -> str:
        """Return what all processes have written to stderr."""
        return (self.folder / "log").read_text()

    def end(self) -> None:
        """End what was started and remove what was made."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for child in reversed(self._children):
                # By its group: of a forked worker, too.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, number)
            deadline = time.monotonic() + 20
            while any(child.poll() is None for child in self._children):
                if time.monotonic() > deadline:
                    break
                time.sleep(0.1)
        for child in self._children:
            child.wait(timeout=20)
            if child.stdout is not None:
                child.stdout.close()
        self._log.close()
        for name in self._made:
            subprocess.run(["ip", "netns", "delete", self._space(name)], check=False)


def has_other_clocks() -> bool:
    """Return whether a process can have another CLOCK_MONOTONIC here."""
    words = ["unshare", "-T", "--monotonic", str(AHEAD_S), "--fork", sys.executable, "-c"]
    ran = subprocess.run(
        [*words, "import time; print(time.monotonic_ns())"], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if ran.returncode:
        return False
    return int(ran.stdout) - time.monotonic_ns() > 0.9e9 * AHEAD_S


def why_not() -> str:
    """Return why no network can be made here; empty where one can."""
    missing = [each for each in ("ip", "nsenter", "unshare") if shutil.which(each) is None]
    if missing:
        return f"{', '.join(missing)} not installed (iproute2, util-linux)"
    if os.geteuid():
        return "network namespaces need root"
    name = f"perflab-{secrets.token_hex(4)}"
    ran = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if ran.returncode:
        return f"no network namespaces: {ran.stderr.strip()}"
    done("ip", "netns", "delete", name)
    return ""


@contextlib.contextmanager
def network(folder: Path, *names: str) -> Iterator[Network]:
    """Give a network with a scheduler; skip where none can be made and none is required."""
    if why := why_not():
        assert os.environ.get("PERFLAB_REQUIRE_DOCKER") != "1", why
        pytest.skip(why)
    made = Network(folder, list(names))
    try:
        made.lay()
        made.schedule()
        yield made
    finally:
        made.end()


def wait_until(holds: Callable[[], bool], within_s: float, told: Callable[[], str]) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, told()
        time.sleep(0.1)
