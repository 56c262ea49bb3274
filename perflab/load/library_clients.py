"""The clients of other libraries, by the name that a workload gives them."""

from __future__ import annotations

from perflab.load.aiohttp_client import AiohttpClient
from perflab.load.clients import Client
from perflab.load.http2_client import Http2Client
from perflab.load.httpx_client import HttpxClient
from perflab.load.prepared import Prepared
from perflab.load.workload import Workload

CLIENTS = {"aiohttp": AiohttpClient, "httpx": HttpxClient, "http2": Http2Client}


def make(workload: Workload, connections: int, prepared: Prepared) -> Client:
    """Return the library client that a workload names."""
    return CLIENTS[workload.client](workload, connections, prepared)
