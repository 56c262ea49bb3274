"""The upstream: its time-outs, and its faults by name."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import aiohttp
from specimen.refusal import Refused
from specimen.timing import Phases

from llm_proxy.refusal import broken

CONNECT_TIMEOUT_S = 5.0
NO_FILES = (errno.EMFILE, errno.ENFILE)
MOST_BYTES = 16_000_000


class Upstream:
    """Asks the upstream, each time on a connection of its own or one that is idle."""

    def __init__(self, address: str, read_timeout_s: float) -> None:
        self._address, self._read_timeout_s = address, read_timeout_s
        self._session: aiohttp.ClientSession | None = None

    async def connect(self) -> None:
        """Make the client, inside the event loop; nothing is asked yet."""
        # Identity: what is passed on is what came. A proxy of the user's shell is not asked.
        headers = {"Accept-Encoding": "identity", "Content-Type": "application/json"}
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_TIMEOUT_S, sock_read=self._read_timeout_s
        )
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=timeout, headers=headers,
            trace_configs=[_tracing()], trust_env=False,
        )  # fmt: skip

    async def close(self) -> None:
        """Close all connections."""
        if self._session:
            await self._session.close()

    async def ask(self, path: str, phases: Phases, body: bytes) -> aiohttp.ClientResponse:
        """Return the upstream's answer, its body not read yet; raise Refused if none comes."""
        assert self._session is not None
        url = self._address + path
        with faults_named():
            response = await self._session.post(
                url, data=body, allow_redirects=False, trace_request_ctx=phases
            )
        phases.reached("headers")
        return response


def _tracing() -> aiohttp.TraceConfig:
    """Let each request know how long it waited for its connection."""

    async def connected(_: Any, context: Any, __: Any) -> None:
        context.trace_request_ctx.reached("connect")

    tracing = aiohttp.TraceConfig()
    tracing.on_connection_create_end.append(connected)
    tracing.on_connection_reuseconn.append(connected)
    return tracing


@contextmanager
def faults_named() -> Iterator[None]:
    """Raise what goes wrong on a connection as what it is; no address is repeated."""
    try:
        yield
    except TimeoutError:
        raise Refused(504, "upstream_silent", "the upstream did not answer in time") from None
    except aiohttp.ClientConnectorError as error:
        if error.os_error.errno in NO_FILES:
            reason = (
                "the proxy has no descriptor left for a connection to the upstream; raise max_files"
            )
            raise Refused(503, "out_of_files", reason) from None
        raise Refused(
            503, "upstream_down", "the proxy cannot reach the upstream; check that it runs"
        ) from None
    except aiohttp.ClientPayloadError:
        raise broken("the upstream broke off in the middle of its answer") from None
    except (aiohttp.ClientError, OSError):
        raise broken("the upstream closed the connection before its answer ended") from None


async def whole_body(response: aiohttp.ClientResponse) -> bytes:
    """Read an answer to its end; raise Refused for one that is not whole."""
    if response.status < 200 or 300 <= response.status < 400:
        raise broken(f"the upstream answered with status {response.status}")
    parts, length = [], 0
    with faults_named():
        while data := await response.content.readany():
            parts.append(data)
            length += len(data)
            if length > MOST_BYTES:
                reason = f"the upstream's answer is longer than {MOST_BYTES} bytes"
                raise Refused(502, "too_long", reason)
    return b"".join(parts)
