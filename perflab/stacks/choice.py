"""The choice between the two backends."""

from __future__ import annotations

import sys

from perflab.errors import BackendUnavailable
from perflab.stacks.backend import Backend
from perflab.stacks.process_backend import ProcessBackend

BACKENDS = ("auto", "docker", "process")


def choose(name: str = "auto") -> Backend:
    """Return the backend of that name; ``auto`` takes Docker when an engine answers.

    Raises BackendUnavailable where the named backend cannot work here; the message says what to do.
    """
    if not sys.platform.startswith("linux"):
        raise BackendUnavailable(
            f"measuring needs Linux, this is {sys.platform}; recorded runs can be read anywhere "
            "(parameter from_run)"
        )
    if name == "process":
        return ProcessBackend()
    # Only now: the package `docker` takes half a second to import.
    from perflab.stacks.docker_backend import DockerBackend, connect

    try:
        return DockerBackend(connect())
    except BackendUnavailable:
        if name == "docker":
            raise
        return ProcessBackend()
