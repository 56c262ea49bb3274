"""A TCP proxy whose delay and bandwidth can be set at any time, and its control over HTTP."""

from __future__ import annotations

import argparse
import asyncio
import signal

import uvloop
from aiohttp import web
from pacing import UNLIMITED
from relay import Client, Link

# JSON has no infinity.
WORD = "unlimited"


def control(link: Link) -> web.Application:
    """Return the control application: GET and PUT /settings, GET /health.

    The lab checks the ranges of settings by ``service.toml`` before it changes them.
    """

    def in_force() -> dict[str, float | str]:
        return {
            "round_trip_ms": link.delays.round_trip_ms,
            "bytes_per_s": _shown(link.down.bytes_per_s),
            "shared_bytes_per_s": _shown(link.down.shared_bytes_per_s),
        }

    async def show(_request: web.Request) -> web.Response:
        return web.json_response(in_force())

    async def change(request: web.Request) -> web.Response:
        wanted = in_force() | await request.json()
        link.change(**{name: _number(value) for name, value in wanted.items()})
        return await show(request)

    application = web.Application()
    application.router.add_get("/health", show)
    application.router.add_get("/settings", show)
    application.router.add_put("/settings", change)
    return application


def _shown(rate: float) -> float | str:
    return WORD if rate == UNLIMITED else rate


def _number(value: float | str) -> float:
    return UNLIMITED if value == WORD else float(value)


def address(text: str) -> tuple[str, int]:
    """Read ``host:port``."""
    host, _, port = text.rpartition(":")
    return host, int(port)


async def serve(listen: tuple[str, int], at: tuple[str, int], upstream: tuple[str, int]) -> None:
    """Run the proxy and its control until SIGINT or SIGTERM."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    link = Link(loop)
    server = await loop.create_server(lambda: Client(link, upstream), *listen, backlog=1024)
    runner = web.AppRunner(control(link), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, *at).start()
    await ended.wait()
    server.close()
    await runner.cleanup()


def main() -> None:
    """Read the addresses and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", type=address, required=True)
    parser.add_argument("--control", type=address, required=True)
    parser.add_argument("--upstream", type=address, required=True)
    options = parser.parse_args()
    uvloop.run(serve(options.listen, options.control, options.upstream))


if __name__ == "__main__":
    main()
