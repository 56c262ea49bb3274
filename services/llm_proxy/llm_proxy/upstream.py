"""The upstream: one connection for each answer, its key, its time-outs, and its faults by name."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import aiohttp

from llm_proxy.counts import Counts
from llm_proxy.refusal import Refused, broken
from llm_proxy.settings import KEY, Endpoint, Settings
from llm_proxy.timing import Phases

# What the stand-in goes by; a client's own key is never passed on.
PASSED_HEADERS = ("x-request-id", "x-fault", "x-fault-after")
NO_FILES = (errno.EMFILE, errno.ENFILE)


class Upstream:
    """Asks the upstream; ``settings`` bound how long that may take."""

    def __init__(self, settings: Settings, endpoint: Endpoint, counts: Counts) -> None:
        self._settings, self._endpoint, self._counts = settings, endpoint, counts
        self._session: aiohttp.ClientSession | None = None

    async def connect(self) -> None:
        """Make the client, inside the event loop; nothing is asked yet."""
        settings = self._settings
        # Identity: what is passed on is what came. A proxy of the user's shell is not asked.
        headers = {"Accept-Encoding": "identity"}
        if self._endpoint.key:
            headers["Authorization"] = f"Bearer {self._endpoint.key}"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=settings.pool_connections),
            timeout=aiohttp.ClientTimeout(
                total=None,
                sock_connect=settings.connect_timeout_s,
                sock_read=settings.read_timeout_s,
            ),
            headers=headers,
            trace_configs=[_tracing(self._counts)],
            trust_env=False,
        )

    async def close(self) -> None:
        """Close all connections."""
        if self._session:
            await self._session.close()

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        given: Mapping[str, str] | None = None,
        phases: Phases | None = None,
    ) -> aiohttp.ClientResponse:
        """Return the upstream's answer, its body not read yet.

        Raises
        ------
        Refused
            The upstream cannot be reached, or does not answer in time.
        """
        assert self._session is not None
        headers = {name: given[name] for name in PASSED_HEADERS if given and name in given}
        with faults_named():
            return await self._session.request(
                method,
                self._endpoint.url + path,
                data=body,
                headers={**headers, "Content-Type": "application/json"},
                allow_redirects=False,
                trace_request_ctx=phases or Phases(),
            )


def _tracing(counts: Counts) -> aiohttp.TraceConfig:
    """Count connections, and let each request know how long it waited for its own."""

    async def made(_: Any, context: Any, __: Any) -> None:
        counts.connections_made += 1
        context.trace_request_ctx.note("connect")

    async def reused(_: Any, context: Any, __: Any) -> None:
        counts.connections_reused += 1
        context.trace_request_ctx.note("connect")

    tracing = aiohttp.TraceConfig()
    tracing.on_connection_create_end.append(made)
    tracing.on_connection_reuseconn.append(reused)
    return tracing


@contextmanager
def faults_named() -> Iterator[None]:
    """Raise what goes wrong on a connection as what it is; no address or key is repeated."""
    try:
        yield
    except TimeoutError:
        raise Refused(504, "upstream_silent", "the upstream does not answer in time") from None
    except aiohttp.ClientConnectorError as error:
        if error.os_error.errno in NO_FILES:
            raise Refused(
                503, "out_of_files", "the proxy has no descriptor left for a connection"
            ) from None
        raise Refused(503, "upstream_down", "the upstream cannot be reached") from None
    except aiohttp.ClientPayloadError:
        raise broken("the upstream broke off in the middle of its answer") from None
    except (aiohttp.ClientError, OSError):
        raise broken("the upstream broke the connection off") from None


async def whole_body(response: aiohttp.ClientResponse, most: int) -> bytes:
    """Read an answer to its end.

    Raises
    ------
    Refused
        It breaks off, falls silent, or is longer than allowed.
    """
    parts, length = [], 0
    with faults_named():
        while data := await response.content.readany():
            parts.append(data)
            length += len(data)
            if length > most:
                raise Refused(
                    502, "answer_too_large", f"the upstream's answer has over {most} bytes"
                )
    return b"".join(parts)


def refuse_status(response: aiohttp.ClientResponse) -> None:
    """Raise Refused for a status whose body is not to be passed on: it may repeat the key."""
    if response.status in (401, 403):
        raise Refused(502, "upstream_refuses", f"the upstream refuses the proxy's key ({KEY})")
    if response.status < 200 or 300 <= response.status < 400:
        raise broken(f"the upstream answers with status {response.status}")
