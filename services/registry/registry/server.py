"""Run the service: one process, one event loop."""

from __future__ import annotations

import logging
import os
import resource
import sys

import uvicorn

from registry.application import create_app
from registry.settings import from_environment


def main() -> None:
    """Read the settings and serve until SIGTERM."""
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    try:
        settings = from_environment()
    except ValueError as error:
        sys.exit(f"registry: {error}")
    # Both ends of each download that it makes of itself, and what each has open behind.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    uvicorn.run(
        create_app(settings),
        host=settings.host,
        port=settings.port,
        loop="asyncio",
        http="httptools",
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        backlog=2048,
        timeout_graceful_shutdown=3,
    )
    # Threads that wait for a slow store would hold up the end of the process.
    os._exit(0)


if __name__ == "__main__":
    main()
