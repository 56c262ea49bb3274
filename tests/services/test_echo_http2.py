"""The echo service answers over HTTP/2 what it answers over HTTP/1.1."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from running import Service, Start, call

from perflab.load import once

pytestmark = pytest.mark.slow
# Beyond the window of a stream and of a connection (65,535 bytes each).
LARGE = 300_000


@pytest.fixture(scope="module")
def echo(started: Start) -> Service:
    return started("echo", body_bytes=LARGE, delay_ms=5)


async def _all_at_once(url: str, number: int) -> list[httpx.Response]:
    async with httpx.AsyncClient(http1=False, http2=True) as client:
        return await asyncio.gather(*(client.get(f"{url}/{place}") for place in range(number)))


def test_bodies_larger_than_a_window_come_whole_on_one_connection(echo: Service) -> None:
    answers = asyncio.run(_all_at_once(f"http://127.0.0.1:{echo.port}", 30))
    for answer in answers:
        assert (answer.status_code, answer.http_version) == (200, "HTTP/2")
        assert answer.content == b"x" * LARGE
        assert float(answer.headers["server-timing"].partition("dur=")[2]) >= 4.0


def test_a_load_over_http2_is_answered_and_both_protocols_are_counted(echo: Service) -> None:
    before = call(echo.port, "GET", "/stats").body["answered"]
    assert httpx.get(f"http://127.0.0.1:{echo.port}/").http_version == "HTTP/1.1"
    shown = once.send(
        f"http://127.0.0.1:{echo.port}/", workers=1, users=4, requests=60, http2=True,
        expect_status=200,
    )  # fmt: skip
    assert (shown["requests"], shown["errors"]) == (60, 0)
    assert call(echo.port, "GET", "/stats").body["answered"] >= before + 61
