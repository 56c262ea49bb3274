"""Run the service: one process, one event loop."""

from __future__ import annotations

import logging
import sys

import uvicorn

from registry.application import create_app
from registry.settings import from_environment
from registry.store.credentials import database_endpoint, store_endpoint


def main() -> None:
    """Read the settings and serve until SIGTERM."""
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    try:
        settings = from_environment()
        store_endpoint(settings), database_endpoint(settings)
        app = create_app(settings)
    except ValueError as error:
        sys.exit(f"registry: {error}")
    uvicorn.run(
        app,
        host=settings.host,
        port=settings.port,
        loop=settings.loop,
        http="httptools",
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        backlog=2048,
        timeout_graceful_shutdown=3,
    )


if __name__ == "__main__":
    main()
