"""The functions of a Node service by samples: Node's own profiler, through its inspector.

SIGUSR1 lets a running Node listen for the inspector on loopback; it is closed at the end. Source:
nodejs.org, Debugging; Chrome DevTools Protocol, Profiler.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

import aiohttp
import psutil

from perflab.errors import ProfilerFailed
from perflab.host.processes import busiest, program_name
from perflab.instruments.py_spy_profiles import Function
from perflab.recordings.causes import MODULE
from perflab.stacks.backend import HOST

OPEN_WITHIN_S, ANSWER_WITHIN_S, POLL_EVERY_S = 5.0, 20.0, 0.05
# The inspector tells its address from a thread of its own, however busy the service is.
ADDRESS_WITHIN = aiohttp.ClientTimeout(total=1.0)
INTERVAL_US = 1000
MOST_BYTES = 1 << 28
CLOSE = "(process.getBuiltinModule || process.mainModule.require)('inspector').close()"
PACKAGES = "/node_modules/"
# What V8 writes for samples without a function.
NOTHING_RAN, GARBAGE, NATIVE = ("(idle)", "(root)"), "(garbage collector)", "(program)"
# A process or a connection that ends, or an answer of another form.
UNANSWERED = (psutil.Error, OSError, aiohttp.ClientError, ValueError, LookupError, TypeError)


def node_process(pids: Iterable[int]) -> psutil.Process | None:
    """Return the Node process that has used most CPU; None where none of them is Node."""
    pid = busiest(pid for pid in pids if program_name(pid) == "node")
    with suppress(psutil.Error):
        return None if pid is None else psutil.Process(pid)
    return None


class NodeProfile:
    """Node's profiler at work in one process."""

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        self._loop = asyncio.new_event_loop()
        self._numbers = iter(range(1, 1 << 30))

    def begin(self) -> None:
        """Open the inspector and start to sample; ProfilerFailed where it does not open."""
        try:
            before = self._ports()
            self._process.send_signal(signal.SIGUSR1)
            self._loop.run_until_complete(self._connect(before))
            for method, words in (
                ("Profiler.enable", {}),
                ("Profiler.setSamplingInterval", {"interval": INTERVAL_US}),
                ("Profiler.start", {}),
            ):
                self._asked(method, words)
        except UNANSWERED as error:
            self.end()
            raise ProfilerFailed(f"Node's inspector: {error}") from None
        except ProfilerFailed:
            self.end()
            raise

    def samples(self) -> tuple[Counter[Function], Counter[str]]:
        """End, and return the samples by function of one's own code, and by call chain.

        ProfilerFailed where Node is gone.
        """
        try:
            folder = self._process.cwd()
        except psutil.Error as error:
            self.end()
            raise ProfilerFailed(f"Node's inspector: {error}") from None
        profile = self._profile()
        return functions_of(profile, folder), call_chains(profile)

    def _profile(self) -> Mapping[str, Any]:
        """Return the profile, and close the inspector."""
        try:
            profile: Mapping[str, Any] = self._asked("Profiler.stop", {})["profile"]
        except UNANSWERED as error:
            raise ProfilerFailed(f"Node's inspector: {error}") from None
        finally:
            self.end()
        return profile

    def end(self) -> None:
        """Close the inspector where Node still answers, and the connection to it."""
        if not self._loop.is_closed():
            self._loop.run_until_complete(self._close())
            self._loop.close()

    async def _close(self) -> None:
        if hasattr(self, "_socket"):
            # The inspector ends this connection before it could answer.
            words = {"id": 0, "method": "Runtime.evaluate", "params": {"expression": CLOSE}}
            with suppress(*UNANSWERED):
                await self._socket.send_json(words)
        if hasattr(self, "_session"):
            await self._session.close()

    def _ports(self) -> set[int]:
        return {
            each.laddr.port
            for each in self._process.net_connections("tcp")
            if each.status == psutil.CONN_LISTEN
        }

    async def _connect(self, before: set[int]) -> None:
        """Connect to the inspector, which listens at a port that is not one of ``before``."""
        self._session = aiohttp.ClientSession(trust_env=False)
        until = time.monotonic() + OPEN_WITHIN_S
        while not (address := await self._address(self._ports() - before)):
            if time.monotonic() > until:
                raise ProfilerFailed("Node did not open its inspector on SIGUSR1")
            await asyncio.sleep(POLL_EVERY_S)
        self._socket = await self._session.ws_connect(address, max_msg_size=MOST_BYTES)

    async def _address(self, ports: Iterable[int]) -> str:
        """Return the inspector's address; empty where none of the ports is its own."""
        for port in sorted(ports):
            # The service may have begun to listen, too.
            with suppress(*UNANSWERED):
                url = f"http://{HOST}:{port}/json"
                async with self._session.get(url, timeout=ADDRESS_WITHIN) as answer:
                    return str((await answer.json(content_type=None))[0]["webSocketDebuggerUrl"])
        return ""

    def _asked(self, method: str, words: Mapping[str, Any]) -> Any:
        """Return the result of a method."""
        number = next(self._numbers)

        async def ask() -> Any:
            await self._socket.send_json({"id": number, "method": method, "params": words})
            while True:
                answer = await self._socket.receive_json(timeout=ANSWER_WITHIN_S)
                if answer.get("id") == number:
                    return answer["result"]

        return self._loop.run_until_complete(ask())


def call_chains(profile: Mapping[str, Any]) -> Counter[str]:
    """Return the samples by call chain: functions with their files, the outermost first."""
    nodes, above = _tree(profile)

    def chain_of(number: int | None) -> Iterator[str]:
        while number is not None:
            frame = nodes[number]["callFrame"]
            if frame["functionName"] not in NOTHING_RAN:
                name = frame["functionName"] or "(anonymous)"
                yield f"{name} ({_file(frame['url'])})".replace(";", ":")
            number = above.get(number)

    chains = (";".join(reversed([*chain_of(number)])) for number in profile["samples"])
    return Counter(filter(None, chains))


def _file(url: str) -> str:
    """Return the file of a frame: that of a package with the package's name, or Node's own."""
    _, is_packages, of_package = url.rpartition(PACKAGES)
    return of_package if is_packages or url.startswith("node:") else PurePosixPath(url).name


def _tree(profile: Mapping[str, Any]) -> tuple[dict[int, Any], dict[int, int]]:
    """Return the nodes of a profile by number, and the number of the node above each."""
    nodes = {node["id"]: node for node in profile["nodes"]}
    above = {child: node["id"] for node in nodes.values() for child in node.get("children", ())}
    return nodes, above


def functions_of(profile: Mapping[str, Any], folder: str) -> Counter[Function]:
    """Return the samples of a profile by function of the service's own code, and package.

    A sample counts for the innermost function of a file that is neither Node's nor a package's, as
    :func:`perflab.instruments.py_spy_profiles.own_functions` has it; what V8 does without one has
    its name.
    """
    nodes, above = _tree(profile)
    names: dict[int, str] = {}

    def name_of(number: int) -> str:
        if number not in names:
            frame = nodes[number]["callFrame"]
            own = _own_name(frame, folder)
            up = above.get(number)
            names[number] = own or (name_of(up) if up is not None else f"{MODULE}node")
        return names[number]

    counts: Counter[Function] = Counter()
    for number in profile["samples"]:
        frame = nodes[number]["callFrame"]
        function = frame["functionName"]
        if function in (GARBAGE, NATIVE):
            counts["garbage collector" if function == GARBAGE else f"{MODULE}node", ""] += 1
        elif function not in NOTHING_RAN:
            counts[name_of(number), _package(frame["url"])] += 1
    return counts


def _package(url: str) -> str:
    """Return the package of a file; nothing for one's own, and for Node's."""
    first, _, rest = url.rpartition(PACKAGES)[2].partition("/")
    scoped = f"{first}/{rest.partition('/')[0]}" if first.startswith("@") else first
    return scoped if PACKAGES in url else ""


def _own_name(frame: Mapping[str, Any], folder: str) -> str:
    """Return ``function (file)`` of the service's own code; nothing for any other."""
    url = str(frame["url"])
    if not url.startswith("file://") or PACKAGES in url:
        return ""
    place = PurePosixPath(unquote(url.removeprefix("file://")))
    inside = place.is_relative_to(folder)
    file = place.relative_to(folder) if inside else place.name
    return f"{frame['functionName'] or '(anonymous)'} ({file})"
