"""Run the stand-in: one process, one event loop."""

from __future__ import annotations

from specimen.server import prepared, server
from specimen.settings import read

from llm_upstream.application import Application
from llm_upstream.settings import Settings


def made() -> tuple[Settings, Application]:
    """Return settings and application."""
    settings = read(Settings, "LLM_UPSTREAM_")
    return settings, Application(settings)


if __name__ == "__main__":
    server(*prepared("llm_upstream", made), loop="uvloop", lifespan="off").run()
