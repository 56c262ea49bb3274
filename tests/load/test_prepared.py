"""Requests prepared before the start: their bytes are exactly one request."""

from __future__ import annotations

from typing import Any

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from perflab.errors import ParameterError
from perflab.load.clients.exchange import Prepared
from perflab.load.clients.targets import Origin
from perflab.load.workload import Connections, Request
from tests.support.examples import examples

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
