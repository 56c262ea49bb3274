"""HTTP/2: asked for before the load, sent by a real client to a real server, or refused."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from perflab.errors import LoadError, ParameterError
from perflab.load import once
from perflab.load.httpx_client import ask_for_http2
from perflab.load.options import LoadOptions
from perflab.load.workload import ClosedLoop, Request, Workload
from perflab.paths import project_root
from tests.load.processes import a_certificate

SERVER = project_root() / "tests" / "load" / "hypercorn_server.py"
OVER_HTTP2 = Workload(request=Request(), arrivals=ClosedLoop(users=2, requests=9), client="http2")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    key, cert = a_certificate(tmp_path_factory.mktemp("h2"))
    return str(cert), str(key)


@contextmanager
def serving(*words: str) -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    child = subprocess.Popen([sys.executable, str(SERVER), str(port), *words])
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


def test_every_answer_comes_over_http2_and_all_share_a_connection() -> None:
    with serving() as port:
        shown = once.send(
            f"http://127.0.0.1:{port}/", workers=1, users=8, requests=80, http2=True,
            expect_status=200, expect_body="2",
        )  # fmt: skip
    assert (shown["requests"], shown["errors"]) == (80, 0)
    assert shown["connections_opened"] <= 1


@pytest.mark.slow
def test_over_tls_the_server_chooses_http2_or_is_refused(pair: tuple[str, str]) -> None:
    trusting = OVER_HTTP2.model_copy(update={"ca_file": pair[0]})
    with serving(*pair, "h2") as port:
        ask_for_http2(f"https://127.0.0.1:{port}/", trusting)
    with (
        serving(*pair, "http/1.1") as port,
        pytest.raises(LoadError, match=r"does not speak HTTP/2.*\(ALPN\).*nothing was sent"),
    ):
        ask_for_http2(f"https://127.0.0.1:{port}/", trusting)


@pytest.mark.slow
def test_a_server_of_http_1_is_refused_and_hears_of_no_request() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        child = subprocess.Popen(
            [
                sys.executable, "-c",
                "from perflab.load import once; import sys\n"
                "try: once.send(sys.argv[1], users=1, requests=1, http2=True, workers=1)\n"
                "except Exception as error: print(error)",
                f"http://127.0.0.1:{server.getsockname()[1]}/",
            ],
            stdout=subprocess.PIPE, text=True, cwd=project_root(),
        )  # fmt: skip
        server.settimeout(60)
        asked, _ = server.accept()
        with asked:
            heard = asked.recv(100)
            asked.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        out, _ = child.communicate(timeout=60)
        server.settimeout(0.1)
        with pytest.raises(TimeoutError):
            server.accept()
    assert heard.startswith(b"PRI * HTTP/2.0")
    assert "does not speak HTTP/2" in out


def test_what_http2_has_not_is_refused_before_the_start() -> None:
    for words, told in (
        ({"connection": "per-request"}, "share one connection"),
        ({"connections": 4}, "share one connection"),
        ({"stream": "sse"}, "records no chunks"),
    ):
        given = {"url": "http://127.0.0.1:9/", "users": 1, "requests": 1, "http2": True, **words}
        with pytest.raises(ParameterError, match=told):
            LoadOptions.of(given).workload()
