"""The client that sends one request and notes its instants, on aiohttp."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import aiohttp

from perflab.load.columns import ERRORS, parse_server_timing
from perflab.load.workload import Request

ERROR_CODES = {name: code for code, name in enumerate(ERRORS)}
Record = dict[str, int]


async def _note_sent(_session: Any, context: SimpleNamespace, _parameters: Any) -> None:
    context.trace_request_ctx["sent_ns"] = time.monotonic_ns()


async def _note_connect_start(_session: Any, context: SimpleNamespace, _parameters: Any) -> None:
    context.connect_began_ns = time.monotonic_ns()


async def _note_connect_end(_session: Any, context: SimpleNamespace, _parameters: Any) -> None:
    record = context.trace_request_ctx
    record["connect_ns"] = time.monotonic_ns() - context.connect_began_ns


def _tracing() -> aiohttp.TraceConfig:
    tracing = aiohttp.TraceConfig()
    tracing.on_request_headers_sent.append(_note_sent)
    tracing.on_connection_create_start.append(_note_connect_start)
    tracing.on_connection_create_end.append(_note_connect_end)
    return tracing


class AiohttpClient:
    """Sends one prepared request over and over; every outcome becomes a record.

    Parameters
    ----------
    url : str
        The whole address.
    request : Request
        What is sent and expected.
    connection : {'per_request', 'keep_alive'}
        Life cycle of connections.
    timeout_s : float
        Bound on one request, in seconds.
    """

    def __init__(self, url: str, request: Request, connection: str, timeout_s: float) -> None:
        self._url = url
        self._request = request
        self._body = request.body.encode() or None
        self._expected = request.expect_body.encode()
        connector = aiohttp.TCPConnector(limit=0, force_close=connection == "per_request")
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=timeout_s),
            trace_configs=[_tracing()],
            headers={"Content-Type": "application/json", **request.headers},
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def perform(self, record: Record) -> dict[str, float]:
        """Send the request, fill the record's instants and outcome, return the server's phases."""
        phases: dict[str, float] = {}
        try:
            # No context manager: its exit waits for the connection to close, which would delay
            # the user's next request; reading to the end releases the connection as well.
            response = await self._session.request(
                self._request.method,
                self._url,
                data=self._body,
                allow_redirects=False,
                trace_request_ctx=record,
            )
            record["first_byte_ns"] = time.monotonic_ns()
            body = await response.read()
            record["done_ns"] = time.monotonic_ns()
            record["status"] = response.status
            record["bytes"] = len(body)
            record["error"] = self._judge(response.status, body)
            header = response.headers.get("Server-Timing")
            if header:
                phases = parse_server_timing(header)
        except asyncio.CancelledError:
            record["error"] = ERROR_CODES["timeout"]
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            record["error"] = ERROR_CODES[_class_of(error)]
        if not record["done_ns"]:
            record["done_ns"] = time.monotonic_ns()
        return phases

    def _judge(self, status: int, body: bytes) -> int:
        if status != self._request.expect_status:
            return ERROR_CODES["status"]
        if self._expected not in body:
            return ERROR_CODES["body"]
        return 0


def _class_of(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, aiohttp.ClientConnectorError):
        return "connect"
    if isinstance(error, (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, OSError)):
        return "reset"
    return "protocol"
