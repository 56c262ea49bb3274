"""Bodies of requests, in both clients; checksums of bodies that are not kept."""

from __future__ import annotations

from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflab.errors import ParameterError
from perflab.load import options
from perflab.load.options import LoadOptions
from perflab.load.workload import Workload
from tests.load.meter import Meter, crc32_of, drive, on_loop

CLIENTS = ("lean", "aiohttp", "httpx")


def work(client: str, **request: Any) -> Workload:
    return Workload.model_validate(
        {
            "request": request, "client": client,
            "arrivals": {"kind": "closed", "users": 1, "requests": 1},
        }
    )  # fmt: skip


def sent(load: Workload, requests: int = 2, **options: Any) -> tuple[list[str], Meter]:
    """Send a load's requests; return error classes, and the requests that the server got."""
    meter = Meter(**options)

    async def go() -> list[str]:
        async with meter as url:
            return await drive(load, url, requests)

    return on_loop(go), meter


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
        assert (request.size, request.sha256) == (len(content), sha256(content).hexdigest())
        assert b"content-type: application/" + kind in request.head or not body


@pytest.mark.parametrize("client", CLIENTS)
def test_several_bodies_are_sent_in_turn(client: str) -> None:
    _, meter = sent(work(client, method="POST", body=("a", "bcd")), requests=4)
    assert [request.size for request in chain(*meter.connections)] == [1, 3, 1, 3]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("flaw_at", "expected", "kind"),
    [
        (-1, {"expect_crc32": crc32_of(200_000)}, ""),
        (-1, {"expect_bytes": 200_000}, ""),
        (0, {"expect_crc32": crc32_of(200_000)}, "checksum"),
        (199_999, {"expect_crc32": crc32_of(200_000)}, "checksum"),
        (-1, {"expect_bytes": 200_001, "expect_crc32": 0}, "length"),
    ],
)
def test_one_wrong_bit_of_a_long_body_is_an_error_of_its_own(
    client: str, flaw_at: int, expected: dict[str, Any], kind: str
) -> None:
    errors, _ = sent(work(client, path="/200000", **expected), flaw_at=flaw_at)
    assert errors == [kind] * 2


def test_the_command_line_sends_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "body"
    path.write_bytes(b"\x00\xff")
    request = workload_of(body_file=str(path), expect_bytes=4).request
    assert (request.method, request.bodies, request.expect_bytes) == ("POST", (b"\x00\xff",), 4)
    monkeypatch.setattr(options, "MOST_BODY_BYTES", 1)
    with pytest.raises(ParameterError, match="has 2 bytes; a body may have"):
        workload_of(body_file=str(path))
    with pytest.raises(ParameterError, match="no-such-file"):
        workload_of(body_file=str(tmp_path / "no-such-file"))


def workload_of(**words: Any) -> Workload:
    return LoadOptions.of({"url": "http://127.0.0.1:9/x", "users": 1, **words}).workload()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ({"ca_file": "/no/such"}, "--ca-file /no/such: no such file"),
        ({"connection": "closed"}, "--connection 'closed': Input should be 'keep-alive' or 'per-"),
        ({"burst": 0, "users": -1}, "--users -1: Input should be greater"),
        ({"headers": ["A secret"]}, "--header: 'A secret' is not like 'Name"),
        ({"use": 1}, "no option 'use' (did you mean 'users'?)"),
    ],
)
def test_the_command_line_refuses_bodies_that_it_cannot_send(
    words: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ParameterError) as refused:
        workload_of(**words)
    assert any(problem in line for line in refused.value.problems), refused.value.problems
