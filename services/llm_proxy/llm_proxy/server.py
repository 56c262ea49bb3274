"""Run the service: one process, one event loop."""

from __future__ import annotations

from fastapi import FastAPI
from specimen.server import prepared, server
from specimen.settings import read

from llm_proxy.application import create_app
from llm_proxy.settings import Settings


def made() -> tuple[Settings, FastAPI]:
    """Return settings and application."""
    settings = read(Settings, "LLM_PROXY_")
    return settings, create_app(settings)


if __name__ == "__main__":
    server(*prepared("llm_proxy", made)).run()
