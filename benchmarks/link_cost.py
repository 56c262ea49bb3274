"""What the link costs: CPU per GB without limits, and the share of a core at a limit.

Without limits, this link and that of another revision (``--against``) take turns in random order,
and their ratio is paired by round. With limits, many connections download through the link for some
seconds: what arrives is set beside the limit, and the link's CPU beside a core. The link has one
core, its two ends the other.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector

import bench

from perflab.paths import services_dir
from perflab.stacks import environments
from perflab.stacks.process_backend import ProcessBackend
from perflab.stacks.spec import load_service

LINK_CORE, OTHER_CORE = bench.cores()
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
BLOCK = bytes(1 << 18)


def sources_of(revision: str, into: Path) -> Path:
    """Return the link's sources as they were at a revision."""
    archive = subprocess.run(
        ["git", "archive", revision, "services/link"],
        cwd=services_dir().parent, check=True, capture_output=True,
    )  # fmt: skip
    subprocess.run(["tar", "-x", "-C", into], input=archive.stdout, check=True)
    return into / "services" / "link"


@contextmanager
def store() -> Iterator[int]:
    """Serve bytes without end, to any number of connections; yields the port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    # Else it fills megabytes of the kernel's for each connection before any of them is under way.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, len(BLOCK))

    def pour(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while True:
                connection.sendall(BLOCK)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=pour, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


class Running:
    """A link that runs on its core."""

    def __init__(
        self, python: str, sources: Path, upstream: int, environment: Mapping[str, str]
    ) -> None:
        self.port, self._control = bench.free_port(), bench.free_port()
        addresses = [self.port, self._control, upstream]
        flags = ("--listen", "--control", "--upstream")
        options = [
            text
            for flag, port in zip(flags, addresses, strict=True)
            for text in (flag, f"127.0.0.1:{port}")
        ]
        self._child = subprocess.Popen(
            ["taskset", "-c", str(LINK_CORE), python, "-P", str(sources / "link.py"), *options],
            env={**os.environ, **environment, "PYTHONPATH": str(sources)},
        )
        while self._child.poll() is None:
            with suppress(OSError):
                self.set({"round_trip_ms": 0})
                return
            time.sleep(0.05)
        sys.exit(f"the link of {sources} ended with {self._child.returncode}")

    def set(self, settings: dict[str, float | str]) -> None:
        """Change settings of the link."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._control}/settings",
            data=json.dumps(settings).encode(), method="PUT",
        )  # fmt: skip
        urllib.request.urlopen(request).close()

    def cpu_s(self) -> float:
        """Return the CPU time that the link has used."""
        fields = Path(f"/proc/{self._child.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S

    def close(self) -> None:
        """End the link."""
        self._child.kill()
        self._child.wait()


def downloaded(link: Running, connections: int, seconds: float) -> tuple[int, float, float]:
    """Download on some connections; return bytes, seconds, and the link's CPU seconds."""
    selector = DefaultSelector()
    opened = [socket.create_connection(("127.0.0.1", link.port)) for _ in range(connections)]
    for each in opened:
        selector.register(each, EVENT_READ)
    into = bytearray(1 << 20)
    _read(selector, into, 0.7)
    begin, before = time.perf_counter(), link.cpu_s()
    read = _read(selector, into, seconds)
    found = read, time.perf_counter() - begin, link.cpu_s() - before
    for each in opened:
        each.close()
    return found


def _read(selector: DefaultSelector, into: bytearray, seconds: float) -> int:
    read, until = 0, time.perf_counter() + seconds
    while time.perf_counter() < until:
        for key, _ in selector.select(0.05):
            read += key.fileobj.recv_into(into)  # type: ignore[union-attr]
    return read


def print_costs(links: dict[str, Running], rounds: int, seconds: float) -> None:
    """Print CPU per GB without limits, and its ratio to the other revision."""
    print(f"{'no limit':12}{'CPU s/GB now':>14}{'before':>9}{'ratio':>24}")
    for connections in (1, 10):
        seen: dict[str, list[float]] = {name: [] for name in links}
        for _ in range(rounds):
            for name in random.sample(list(links), len(links)):
                read, _, cpu_s = downloaded(links[name], connections, seconds)
                seen[name].append(cpu_s / (read / 1e9))
        ratios = [now / before for now, before in zip(seen["now"], seen["before"], strict=True)]
        shown = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        now, before = statistics.median(seen["now"]), statistics.median(seen["before"])
        print(f"{connections:>3} {'at once':8}{now:>14.2f}{before:>9.2f}{shown:>24}")


def print_shares(link: Running, seconds: float) -> None:
    """Print what arrives at limits, and the share of a core that it takes."""
    print(f"\n{'limit MB/s':>10}{'each':>13}{'delay ms':>10}{'arrives/limit':>15}{'core':>7}")
    for connections, each, total, delay_ms in (
        (1, 0.8e6, None, 0), (10, 0.8e6, None, 0), (100, 0.8e6, None, 0), (100, 0.8e6, None, 20),
        (100, None, 80e6, 0), (300, 0.1e6, None, 0), (1, 100e6, None, 0), (1, 100e6, None, 20),
    ):  # fmt: skip
        link.set({
            "round_trip_ms": delay_ms, "bytes_per_s": each or "unlimited",
            "total_bytes_per_s": total or "unlimited",
        })  # fmt: skip
        read, passed_s, cpu_s = downloaded(link, connections, seconds)
        limit = total or each * connections  # type: ignore[operator]
        shown = f"{(each or 0) / 1e6:g} x {connections}" if each else f"in {connections}"
        print(
            f"{limit / 1e6:>10.1f}{shown:>13}{delay_ms:>10}{read / passed_s / limit:>15.4f}"
            f"{cpu_s / passed_s:>7.1%}",
            flush=True,
        )


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", default="", help="a git revision; none: only the limits")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    given = parser.parse_args()
    os.sched_setaffinity(0, {OTHER_CORE})
    backend, spec = ProcessBackend(), load_service("link")
    backend.prepare(spec, lambda _: None)
    python = str(environments.environment(spec, backend.environments).python)
    with store() as upstream, tempfile.TemporaryDirectory() as folder:
        links = {"now": Running(python, spec.folder, upstream, spec.environment)}
        try:
            if given.against:
                before = sources_of(given.against, Path(folder))
                links["before"] = Running(python, before, upstream, {})
                print_costs(links, given.rounds, given.seconds / 3)
            print_shares(links["now"], given.seconds)
        finally:
            for each in links.values():
                each.close()


if __name__ == "__main__":
    main()
