"""Run the stand-in: one process, one event loop."""

from __future__ import annotations

import logging
import sys

import uvicorn

from llm_upstream.application import Application
from llm_upstream.exchange import Broken
from llm_upstream.settings import from_environment


def main() -> None:
    """Read the settings and serve until SIGTERM."""
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    try:
        settings = from_environment()
        app = Application(settings)
    except (ValueError, OSError) as error:
        sys.exit(f"llm_upstream: {error}")
    logging.getLogger("uvicorn.error").addFilter(is_no_fault_on_purpose)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        loop=settings.loop,
        http="httptools",
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        backlog=2048,
        timeout_graceful_shutdown=3,
    )
    server = uvicorn.Server(config)
    app.connections = lambda: len(server.server_state.connections)
    server.run()


def is_no_fault_on_purpose(record: logging.LogRecord) -> bool:
    """Keep what the log would say of connections that were to be broken."""
    return not (record.exc_info and isinstance(record.exc_info[1], Broken))


if __name__ == "__main__":
    main()
