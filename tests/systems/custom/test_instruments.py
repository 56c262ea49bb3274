"""The instruments of variants refuse what they could not measure, before anything starts."""

from __future__ import annotations

import re
import socket
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perflab.errors import LoadError, ServiceFailed, WrongAnswer
from perflab.load.clients.exchange import render
from perflab.load.clients.targets import Origin
from perflab.load.workload.arrivals import ClosedLoop
from perflab.load.workload.mix import Weighted
from perflab.load.workload.request import Request
from perflab.load.workload.workload import Workload
from perflab.stacks.plan import StackPlan
from perflab.systems.custom.instruments import RightAnswer
from tests.support.answering import answering


def test_an_address_where_nobody_listens_is_refused_before_the_run_begins() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        place = f"127.0.0.1:{listening.getsockname()[1]}"
        instrument = RightAnswer(variant="new", target=f"http://{place}")
        instrument.check_usable(StackPlan(nodes=()))
    with pytest.raises(LoadError, match=f"variant 'new': nobody answers at {place} "):
        instrument.check_usable(StackPlan(nodes=()))
    RightAnswer(variant="new").check_usable(StackPlan(nodes=()))


def ask(
    port: int, request: Request, needs: tuple[str, ...] = (), log: str = "", **load: Any
) -> None:
    """Let a variant that runs at a port be checked before a load of this request."""
    launch = SimpleNamespace(port=port, spec=SimpleNamespace(needs=needs))
    running = SimpleNamespace(launch=launch, log=lambda: log)
    arrivals = ClosedLoop(users=1, requests=1, max_duration_s=5)
    workload = Workload(request=request, arrivals=arrivals, **load)
    scene: Any = SimpleNamespace(workload=workload, instance=lambda _: running)
    RightAnswer(variant="new").sensor(scene).before()


def refused(request: Request, status: int, port: int) -> str:
    """Return what is said of a variant that has a store, and answers with another status."""
    with pytest.raises(WrongAnswer, match=f"has status {status} instead of 200") as caught:
        ask(port, request, needs=("db",), log="started\nno such user")
    return str(caught.value)


@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_are_told_with_the_header_that_was_sent_and_the_log(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN_OF_OURS", "never-shown-7")
    with answering(lambda *_: (status, "never-shown-7 is wrong")) as port:
        sent = Request(headers={"X-Auth": "{env:TOKEN_OF_OURS}", "Accept": "*/*"})
        told = refused(sent, status, port)
        assert "refused the credentials: sent was X-Auth: {env:TOKEN_OF_OURS}" in told
        assert "its store holds only what setup made" in told
        assert told.endswith("its last log lines:\n  | started\n  | no such user")
        assert "expect_status" not in told
        assert "Accept" not in told
        assert "never-shown-7" not in told
        assert "no header with credentials was sent" in refused(Request(), status, port)


@pytest.mark.promise
def test_a_credential_that_a_file_gave_is_not_shown_where_it_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tokens.txt"
    file.write_text("t-9-hunter2\n")
    line = f"{{line:{file}}}"
    asked = Request(path=f"/a?token={line}", headers={"Authorization": f"Bearer {line}"})
    mix = (Weighted(name="login", request=asked),)
    with (
        answering(lambda *_: (401, "t-9-hunter2 is unknown")) as port,
        pytest.raises(WrongAnswer, match="has status 401") as caught,
    ):
        ask(port, asked, log="refused t-9-hunter2", mix=mix)
    told = str(caught.value)
    assert "hunter2" not in told
    assert f"the answer to GET /a?token={line} has status 401" in told
    assert f"refused the credentials: sent was Authorization: Bearer {line}" in told


@pytest.mark.promise
@pytest.mark.parametrize("name", ["Łódź", "Zoë", "Zoe"])
def test_the_check_sends_the_same_headers_as_the_load(name: str) -> None:
    seen: list[bytes] = []

    class Noting(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # The parser of heads reads them as Latin-1.
            seen.append(self.headers["X-Name"].encode("latin-1"))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    request = Request(headers={"X-Name": name}, expect_body="ok")
    with HTTPServer(("127.0.0.1", 0), Noting) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        ask(server.server_port, request)
        origin = Origin("http", "127.0.0.1", server.server_port)
    assert seen == [name.encode()]
    assert b"\r\nX-Name: " + seen[0] + b"\r\n" in render(request, b"", origin, closing=False)


@pytest.mark.promise
@pytest.mark.parametrize(
    ("head", "goes_on", "why"),
    [
        (b"Connection: close", True, "its body did not end within 0.3 s"),
        (b"Content-Length: 99", False, "IncompleteRead(8 bytes read, 91"),
    ],
)
def test_the_check_of_a_body_that_does_not_end_ends(head: bytes, goes_on: bool, why: str) -> None:
    def serve(listening: socket.socket) -> None:
        client, _ = listening.accept()
        with client, suppress(OSError):
            client.recv(1 << 16)
            client.sendall(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\ndata: 1\n")
            while goes_on:
                client.sendall(b"data: 1\n")
                time.sleep(0.05)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        with pytest.raises(ServiceFailed, match=re.escape(why)):
            ask(listening.getsockname()[1], Request(), timeout_s=0.3)


def test_early_hints_are_not_the_answer_that_is_checked() -> None:
    def serve(listening: socket.socket) -> None:
        client, _ = listening.accept()
        with client:
            client.recv(1 << 16)
            client.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n")
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        ask(listening.getsockname()[1], Request(expect_body="ok"), timeout_s=5.0)


def test_another_wrong_answer_is_told_with_the_log_and_what_else_may_be_expected() -> None:
    with answering(lambda *_: (500, "")) as port:
        told = refused(Request(), 500, port)
    assert "mend the variant, or change expect_status or expect_body\n" in told
    assert "  | no such user" in told


@pytest.mark.parametrize("status", [404, 405])
def test_where_nothing_is_at_a_path_the_way_out_is_another_path(status: int) -> None:
    with answering(lambda *_: (status, '{"access_token": "of-the-service"}')) as port:
        told = refused(Request(), status, port)
    assert "name the path that users ask for (--path" in told
    assert "of-the-service" not in told
