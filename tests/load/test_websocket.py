"""WebSocket connections, in both directions, against an independent server and a hostile one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
import uvloop

from perflab.errors import TargetRefused
from perflab.load.clients.websocket import connect
from perflab.load.clients.websocket_messages import WebSocketError
from tests.load.hostile import accepting
from tests.load.hostile_websockets import Ears
from tests.load.processes import served

BOTH = pytest.mark.parametrize("deflate", [False, True], ids=["plain", "deflate"])


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with served("deflate", program="websocket_server.py") as (port, _):
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


def test_a_port_without_a_server_is_connect_and_a_foreign_host_is_refused() -> None:
    with pytest.raises(WebSocketError) as caught:
        uvloop.run(connect("ws://127.0.0.1:9/", *Ears().both, timeout_s=1.0))
    assert caught.value.kind == "connect"
    with pytest.raises(TargetRefused):
        uvloop.run(connect("ws://example.org/", *Ears().both))


EXTENSIONS = {False: "", True: "permessage-deflate"}


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
    first = [b"\x81\x01%c" % letter for letter in b"abcdefgh"]

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(accepting(await reader.readuntil(b"\r\n\r\n"), EXTENSIONS[deflate]))
        await asyncio.sleep(0.05)
        # The ninth message begins in the first read and ends in the second.
        writer.write(b"".join(first) + b"\x81\x02i")
        await asyncio.sleep(0.5)
        writer.write(b"j")
        await reader.read()
        writer.close()

    async def work() -> None:
        listening = await asyncio.start_server(talk, "127.0.0.1", 0)
        url = f"ws://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
        ears = BusyEars()
        opened = await connect(url, *ears.both, deflate=deflate)
        await ears.until(9)
        await opened.close()
        listening.close()
        instants = [at_ns for _, at_ns in ears.messages]
        assert len(set(instants[:8])) == 1
        assert instants[8] - instants[7] > 100e6

    uvloop.run(work())
