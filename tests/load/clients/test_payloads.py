"""Requests as bytes: exactly one request each, with their bodies."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from perflab.errors import ParameterError
from perflab.load import body_files
from perflab.load.clients.exchange import Prepared
from perflab.load.clients.targets import Origin
from perflab.load.options import LoadOptions
from perflab.load.workload import Connections, Request, Workload
from tests.load.clients.hostile import on_uvloop
from tests.load.meter import Meter, drive
from tests.support.examples import examples

CLIENTS = ("lean", "aiohttp", "httpx")


def work(client: str, **request: Any) -> Workload:
    return Workload.model_validate(
        {
            "request": request, "client": client,
            "arrivals": {"kind": "closed", "users": 1, "requests": 1},
        }
    )  # fmt: skip


def sent(load: Workload, requests: int = 2) -> tuple[list[str], Meter]:
    """Send a load's requests; return error classes, and the requests that the server got."""
    meter = Meter()

    async def go() -> list[str]:
        async with meter as url:
            return await drive(load, url, requests)

    return on_uvloop(go), meter


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(CLIENTS), st.text(max_size=300) | st.binary(max_size=300))
def test_any_text_and_any_bytes_arrive_as_they_are(client: str, body: str | bytes) -> None:
    try:
        content = body.encode() if isinstance(body, str) else body
    except UnicodeEncodeError:
        return
    described = work(client, method="POST", body=body).model_dump_json()
    errors, meter = sent(Workload.model_validate_json(described))
    assert errors == [""] * 2
    kind = b"json" if isinstance(body, str) else b"octet-stream"
    for request in chain(*meter.connections):
        head, _, sent_body = request.partition(b"\r\n\r\n")
        assert sent_body == content
        assert b"content-type: application/" + kind in head.lower() or not body


@pytest.mark.parametrize("client", CLIENTS)
def test_several_bodies_are_sent_in_turn(client: str) -> None:
    _, meter = sent(work(client, method="POST", body=("a", "bcd")), requests=4)
    bodies = [request.partition(b"\r\n\r\n")[2] for request in chain(*meter.connections)]
    assert bodies == [b"a", b"bcd"] * 2


def test_a_header_that_is_given_twice_is_refused() -> None:
    with pytest.raises(ParameterError, match="'cookie' is given twice; give its values in one"):
        LoadOptions.of({"url": "http://127.0.0.1", "headers": ("Cookie: a=1", "cookie: b=2")})


def test_the_command_line_sends_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "body"
    path.write_bytes(b"\x00\xff")
    request = workload_of(body=f"@{path}", expect_bytes=4).request
    assert (request.method, request.bodies, request.expect_bytes) == ("POST", (b"\x00\xff",), 4)
    (tmp_path / "text").write_bytes(b'{"password": "hunter2-x"}\r\n')
    (tmp_path / "sign").write_bytes(b"@prefix")
    of_text = workload_of(body=f"@{tmp_path}/text")
    assert "hunter2" not in of_text.model_dump_json()
    assert of_text.with_credentials().request.bodies == (b'{"password": "hunter2-x"}\r\n',)
    assert workload_of(body=f"@{tmp_path}/sign").request.bodies == (b"@prefix",)
    monkeypatch.setattr(body_files, "MOST_BYTES", 1)
    with pytest.raises(ParameterError, match="has 2 bytes; a body may have"):
        workload_of(body=f"@{path}")
    with pytest.raises(ParameterError, match="no-such-file"):
        workload_of(body=f"@{tmp_path}/no-such-file")


def workload_of(**words: Any) -> Workload:
    return LoadOptions.of({"url": "http://127.0.0.1:9/x", "users": 1, **words}).workload()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ({"ca_file": "/no/such"}, "--ca-file /no/such: no such file"),
        ({"use": 1}, "no option 'use' (did you mean 'users'?)"),
    ],
)
def test_an_unknown_option_and_a_missing_file_are_refused(
    words: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ParameterError) as refused:
        workload_of(**words)
    assert any(problem in line for line in refused.value.problems), refused.value.problems


HOME = Origin("http", "127.0.0.1", 8000)


def parsed(payload: bytes) -> tuple[h11.Request, bytes, bytes]:
    """Read a request like a server; return it, its body, and the bytes after it."""
    server = h11.Connection(h11.SERVER)
    server.receive_data(payload)
    request = server.next_event()
    assert isinstance(request, h11.Request)
    body = b""
    while isinstance(event := server.next_event(), h11.Data):
        body += bytes(event.data)
    assert isinstance(event, h11.EndOfMessage)
    return request, body, server.trailing_data[0]


@settings(max_examples=examples(300), deadline=None)
@given(st.sampled_from(["GET", "POST", "PUT", "DELETE"]), st.text(max_size=20))
def test_an_accepted_request_is_exactly_one_request(method: str, word: str) -> None:
    try:
        request = Request(method=method, path=f"/p{word}", headers={"X": word}, body=word)
        prepared = Prepared(request, HOME)
    except (ValidationError, ParameterError):
        return
    read, body, rest = parsed(prepared.payload)
    assert rest == b""
    assert read.method == method.encode()
    assert body == word.encode()
    assert dict(read.headers)[b"host"] == b"127.0.0.1:8000"
    assert len(read.headers) <= 4


HEADERS = ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\x00b", "\x7f"]
PATHS = ["a b", "a\r\n\r\nGET /evil", " HTTP/1.1\r\nX: 1", "\x00", "é"]


@pytest.mark.parametrize(
    "words",
    [*({"headers": {"X": value}} for value in HEADERS), *({"path": f"/{end}"} for end in PATHS)],
)
def test_a_value_cannot_add_a_header_and_a_path_cannot_end_early(words: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Request.model_validate(words)


def test_text_that_is_no_unicode_is_refused_before_the_start() -> None:
    for request in (Request(method="POST", body="\ud800"), Request(expect_body="\ud800")):
        with pytest.raises(ParameterError, match="UTF-8"):
            Prepared(request, HOME)


def test_headers_of_the_request_are_not_added_again() -> None:
    headers = {"hOST": "other", "Content-type": "text/plain", "connection": "keep-alive"}
    request = Request(method="POST", headers=headers, body="x")
    read, _, _ = parsed(Prepared(request, HOME, Connections(reuse="per_request")).payload)
    names = [b"connection", b"content-length", b"content-type", b"host"]
    assert sorted(name for name, _ in read.headers) == names
    assert dict(read.headers)[b"host"] == b"other"
