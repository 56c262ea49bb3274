"""The echo service answers over HTTP/2 what it answers over HTTP/1.1."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from running import Service, Start

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
