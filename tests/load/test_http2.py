"""HTTP/2: the server is asked before the load, and the load is sent or refused."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perflab.errors import LoadError, ParameterError
from perflab.load import once
from perflab.load.clients.httpx_client import ask_for_http2
from perflab.load.clients.library_client import out_of_reach
from perflab.load.options import LoadOptions
from perflab.load.workload import ClosedLoop, Request, Scripted, Workload
from perflab.paths import project_root
from tests.load.hostile import on_uvloop
from tests.load.meter import Meter
from tests.load.processes import a_certificate

SERVER = project_root() / "services" / "echo" / "server.py"
OVER_HTTP2 = Workload(request=Request(), arrivals=ClosedLoop(users=2, requests=9), client="http2")


@pytest.fixture
def echo() -> Iterator[int]:
    """Run a server that speaks HTTP/2 with prior knowledge; yield its port.

    Its bodies are larger than the window of a stream and of a connection (65,535 bytes each).
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    words = ["--listen", f"127.0.0.1:{port}", "--body-bytes", "300000"]
    child = subprocess.Popen([sys.executable, str(SERVER), *words])
    try:
        for _ in range(600):
            with socket.socket() as trying:
                if not trying.connect_ex(("127.0.0.1", port)):
                    break
            time.sleep(0.05)
        yield port
    finally:
        child.kill()
        child.wait()


def test_every_answer_comes_over_http2_and_all_share_a_connection(echo: int) -> None:
    shown = once.send(
        f"http://127.0.0.1:{echo}/",
        workers=1,
        users=8,
        requests=80,
        http2=True,
        expect_bytes=300_000,
    )
    assert (shown["requests"], shown["errors"]) == (80, 0)
    assert shown["connections_opened"] <= 1


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_server_of_http_1_is_refused_before_the_load(tmp_path: Path, scheme: str) -> None:
    key, certificate = a_certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    tls.set_alpn_protocols(["http/1.1"])
    meter = Meter(tls if scheme == "https" else None)
    trusting = OVER_HTTP2.model_copy(update={"ca_file": str(certificate), "timeout_s": 1.0})

    async def ask() -> None:
        async with meter as url:
            await asyncio.to_thread(ask_for_http2, url, trusting)

    with pytest.raises(LoadError, match=r"does not answer over HTTP/2.*no load was sent"):
        on_uvloop(ask)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"client": "http2", "connections": "per_request"}, "share one connection"),
        ({"client": "http2", "connections": 4}, "share one connection"),
        ({"request": {"stream": "sse"}}, "the httpx client records no chunks"),
        ({"request": {"progress_points": 8}}, "the httpx client records no progress_points"),
        ({"request": {"redirects": 1}}, "the httpx client follows no redirects"),
        ({"arrivals": Scripted(script="a:B", users=1, duration_s=1)}, "lets no scripted users act"),
    ],
)
def test_features_of_the_lean_client_alone_are_refused_before_the_start(
    words: dict[str, Any], told: str
) -> None:
    workload = Workload.model_validate(
        {"request": {}, "arrivals": OVER_HTTP2.arrivals, "client": "httpx", **words}
    )
    (problem,) = out_of_reach(workload)
    assert told in problem


def test_the_command_refuses_what_its_client_cannot_do() -> None:
    words = {"url": "http://127.0.0.1:9/", "users": 1, "requests": 1, "http2": True}
    with pytest.raises(ParameterError, match="records no chunks"):
        LoadOptions.of({**words, "stream": "sse"}).workload()
