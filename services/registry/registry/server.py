"""Run the service: one process, one event loop."""

from __future__ import annotations

import os
import resource

from fastapi import FastAPI
from specimen.server import prepared, server
from specimen.settings import read

from registry.application import create_app
from registry.settings import Settings


def made() -> tuple[Settings, FastAPI]:
    """Return settings and application."""
    settings = read(Settings, "REGISTRY_")
    return settings, create_app(settings)


if __name__ == "__main__":
    # Both ends of each download that it makes of itself, and what each has open behind.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    server(*prepared("registry", made)).run()
    # Threads that wait for a slow store would hold up the end of the process.
    os._exit(0)
