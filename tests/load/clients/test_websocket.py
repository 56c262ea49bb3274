"""WebSocket connections, against an independent server and against hostile ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.server import serve

from perflab.errors import TargetRefused
from perflab.load.clients.websocket import WebSocket, connect
from perflab.load.clients.websocket_messages import Deflate, WebSocketError
from perflab.load.records.result import LoadResult
from perflab.load.workload import Request, Scripted, Workload
from tests.load.clients.hostile import Hostile, Part, Script, accepting, beside, peak_bytes
from tests.load.clients.hostile_websockets import (
    CONT,
    DEFLATE,
    PEERS,
    TEXT,
    Ears,
    Peer,
    closing,
    frame,
)
from tests.load.processes import a_certificate, a_worker, served

BOTH = pytest.mark.parametrize("deflate", [False, True], ids=["plain", "deflate"])


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with served("deflate", program="websocket_server.py") as port:
        yield f"ws://127.0.0.1:{port}"


@BOTH
def test_messages_come_back_whole_with_their_instants(server: str, deflate: bool) -> None:
    async def work() -> None:
        ears = Ears()
        opened = await connect(f"{server}/echo", *ears.both, deflate=deflate)
        texts = [b"a", b"", "h\u00e9".encode(), b"x" * 200_000]
        before = time.monotonic_ns()
        for text in texts:
            assert opened.send(text) >= before
        await ears.until(len(texts))
        assert [data for data, _ in ears.messages] == texts
        instants = [at for _, at in ears.messages]
        assert instants == sorted(instants)
        assert before < instants[0] < time.monotonic_ns()
        await opened.close()
        await ears.until(ends=1)
        assert ears.ends[0][0] == ""
        with pytest.raises(WebSocketError) as caught:
            opened.send(b"too late")
        assert caught.value.kind == "ws_closed"

    uvloop.run(work())


def test_a_certificate_of_ones_own_is_trusted_where_the_load_says_so(tmp_path: Path) -> None:
    tls, certificate = a_certificate(tmp_path)
    arrivals = Scripted(script="a:B", users=1, duration_s=1)
    trusting = Workload(request=Request(), arrivals=arrivals, ca_file=str(certificate))

    async def work() -> None:
        async with serve(lambda socket: socket.wait_closed(), "127.0.0.1", 0, ssl=tls) as server:
            url = f"wss://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            await (await connect(url, *Ears().both, tls=trusting.tls_context)).close()
            with pytest.raises(WebSocketError) as caught:
                await connect(url, *Ears().both)
            assert caught.value.kind == "tls"

    uvloop.run(work())


def test_a_port_without_a_server_is_connect_and_a_foreign_host_is_refused() -> None:
    with pytest.raises(WebSocketError) as caught:
        uvloop.run(connect("ws://127.0.0.1:9/", *Ears().both, timeout_s=1.0))
    assert caught.value.kind == "connect"
    with pytest.raises(TargetRefused):
        uvloop.run(connect("ws://example.org/", *Ears().both))


class BusyEars(Ears):
    """A listener that takes a while for every message."""

    def message(self, data: bytes, at_ns: int) -> None:
        super().message(data, at_ns)
        busy_until = time.monotonic() + 0.005
        while time.monotonic() < busy_until:
            pass


@pytest.mark.alone
@BOTH
def test_messages_of_one_read_share_its_instant_and_later_ones_do_not(deflate: bool) -> None:
    first = b"".join(frame(TEXT, b"%c" % letter) for letter in b"abcdefgh")
    # The ninth message begins in the first read and ends in the second.
    parts = (Part(first + frame(TEXT, b"ij")[:-1], 0.05), Part(b"j", 0.5))
    script = Script(parts, "hang", upgrades=DEFLATE if deflate else "")

    async def work() -> None:
        ears = BusyEars()
        async with Hostile([script]) as url:
            opened = await connect(url.replace("http", "ws"), *ears.both, deflate=deflate)
            await ears.until(9)
            await opened.close()
        instants = [at_ns for _, at_ns in ears.messages]
        assert len(set(instants[:8])) == 1
        assert instants[8] - instants[7] > 100e6

    uvloop.run(work())


SCRIPT = """
import asyncio
from perflab.load.users import User, action

class Caller(User):
    async def on_start(self):
        path = "/" + self.parameters["paths"][self.number]
        await self.websocket(path, self.hear, deflate=self.parameters["deflate"][self.number])
    def hear(self, data, at_ns):
        pass
    @action
    async def stay(self):
        await asyncio.sleep(0.5)
"""
TIMEOUT_S = 1.5
STAY_S = {False: 2.0, True: 6.0}
OVERTIME_S = 5.0
MAX_GROWTH_BYTES = 200 * 1024 * 1024


@pytest.mark.slow
@pytest.mark.alone
# Peers that flood run alone: others beside them would not be read before their time-out.
@pytest.mark.parametrize("floods", [False, True], ids=["others", "floods"])
def test_each_peer_is_counted_once_with_its_class_in_time_and_in_little_memory(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], floods: bool
) -> None:
    script = tmp_path / "caller.py"
    script.write_text(SCRIPT)
    served = {f"/{number}".encode(): peer.script for number, peer in enumerate(PEERS)}
    with a_worker() as generator, beside(Hostile([Script()], served)) as url:
        before = peak_bytes(generator.pids[0])
        called = {str(number): peer for number, peer in enumerate(PEERS) if peer.floods == floods}
        deflate = [peer.deflate for peer in called.values()]
        arrivals = Scripted(
            script=f"{script}:Caller",
            users=len(called),
            duration_s=STAY_S[floods],
            parameters={"paths": list(called), "deflate": deflate},
        )
        work = Workload(request=Request(), arrivals=arrivals, timeout_s=TIMEOUT_S)
        result = generator.run(work, url)
        check(result, list(called.values()))
        result.discard()
        grown = peak_bytes(generator.pids[0]) - before
    assert grown < MAX_GROWTH_BYTES
    # Errors of a library become error classes, and nothing in the terminal.
    assert capfd.readouterr().err == ""


def check(result: LoadResult, peers: Sequence[Peer]) -> None:
    table = result.requests
    ends = {
        peer.name: list(table[table["user"] == user]["error"]) for user, peer in enumerate(peers)
    }
    assert ends == {peer.name: [peer.outcome] if peer.outcome else [] for peer in peers}
    # The loop's last look is at the end of the load.
    took_s = np.ptp(result.wakeups[0].woken_ns) / 1e9
    assert took_s < STAY_S[any(peer.floods for peer in peers)] + TIMEOUT_S + OVERTIME_S


async def close_code_of(data: bytes, extensions: str, ears: Ears | None = None) -> int:
    """Return the close code that a client sends for some frames."""
    sent_frame: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(accepting(await reader.readuntil(b"\r\n\r\n"), extensions) + data)
        sent_frame.set_result(await reader.readexactly(8))
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"ws://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
    opened = await connect(url, *(ears or Ears()).both, deflate=bool(extensions))
    async with asyncio.timeout(5):
        frame_bytes = await sent_frame
    await opened.close()
    listening.close()
    masked, mask = frame_bytes[6:8], frame_bytes[2:6]
    return int.from_bytes(bytes(a ^ b for a, b in zip(masked, mask, strict=False)), "big")


@pytest.mark.parametrize("extensions", ["", DEFLATE], ids=["plain", "deflate"])
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (frame(CONT, b"a"), 1002),
        (frame(TEXT, b"\xff"), 1007),
        (closing(1005), 1002),
        (closing(4001), 4001),
        (frame(8), 1000),
        (frame(TEXT, bytes(1 << 20), last=False) + frame(CONT, b"x"), 1009),
    ],
)
def test_the_server_gets_a_close_code_with_the_reason(
    data: bytes, code: int, extensions: str
) -> None:
    assert uvloop.run(close_code_of(data, extensions)) == code


def send_for_ever(opened: WebSocket) -> None:
    for _ in range(100):
        opened.send(bytes(1 << 20), text=False)


def test_a_server_that_reads_nothing_is_given_up_by_the_sender() -> None:
    async def work() -> tuple[str, list[tuple[str, int]]]:
        hostile = Hostile([Script((), "hang", upgrades="")])
        ears = Ears()
        async with hostile as url:
            opened = await connect(url.replace("http", "ws"), *ears.both)
            with pytest.raises(WebSocketError, match="wait for answers") as caught:
                send_for_ever(opened)
            await opened.close()
            with pytest.raises(WebSocketError) as later:
                opened.send(b"a")
            assert later.value.kind == "not_read"
        return caught.value.kind, ears.ends

    assert uvloop.run(work()) == ("not_read", [("not_read", 0)])


def test_a_listener_that_fails_ends_its_connection_as_a_fault_of_the_script() -> None:
    class Deaf(Ears):
        def message(self, *_: object) -> None:
            raise ValueError("deaf")

    ears = Deaf()

    async def work() -> list[dict[str, Any]]:
        complaints: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: complaints.append(what))
        assert await close_code_of(frame(TEXT, b"a") * 3, "", ears) == 1011
        return complaints

    assert [str(what["exception"]) for what in uvloop.run(work())] == ["deaf"]
    assert ears.ends == [("script", 0)]


@given(
    st.lists(st.binary(max_size=3000), max_size=6),
    st.booleans(),
    st.booleans(),
    st.integers(9, 15),
)
def test_what_is_packed_is_unpacked_on_any_terms(
    messages: list[bytes], here: bool, there: bool, bits: int
) -> None:
    sizes = {"server_max_window_bits": str(bits), "client_max_window_bits": str(bits)}
    of_client = {"client_no_context_takeover": ""} if here else {}
    of_server = {"server_no_context_takeover": ""} if there else {}
    # Each side mirrors the terms of the other.
    mirrored = {name.replace("client", "server"): "" for name in of_client}
    mirrored |= {name.replace("server", "client"): "" for name in of_server}
    client, server = Deflate({**sizes, **of_client, **of_server}), Deflate(sizes | mirrored)
    for message in messages:
        assert server.unpack(client.pack(message)) == message
        assert client.unpack(server.pack(message)) == message
