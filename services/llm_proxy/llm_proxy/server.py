"""Run the service: one process, one event loop."""

from __future__ import annotations

import logging
import sys

import uvicorn

from llm_proxy.application import create_app
from llm_proxy.settings import from_environment


def main() -> None:
    """Read the settings and serve until SIGTERM."""
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    try:
        settings = from_environment()
        app = create_app(settings)
    except (ValueError, OSError) as error:
        sys.exit(f"llm_proxy: {error}")
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
