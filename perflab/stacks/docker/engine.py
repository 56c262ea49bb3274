"""This user's Docker engine on this machine."""

from __future__ import annotations

import os
from typing import Any

from perflab.errors import BackendUnavailable

# How long an engine may take to answer at all, and then for a piece of work.
ANSWERS_WITHIN_S, WORK_S = 5, 120


def docker_client() -> Any | None:
    """Return a client of this user's Docker engine; None where none answers."""
    try:
        return connect()
    except BackendUnavailable:
        return None


def connect() -> Any:
    """Return a client of this user's Docker engine on this machine.

    It is the engine of ``DOCKER_HOST``, or of the current context of the ``docker`` command.
    BackendUnavailable where none answers within some seconds, or it is not reached by a socket.
    """
    import docker  # Late: this takes half a second.
    from docker.errors import DockerException

    address = ""
    try:
        address = os.environ.get("DOCKER_HOST") or _context_address()
        if address.startswith(("unix://", "/")):
            client = docker.DockerClient(base_url=address, timeout=ANSWERS_WITHIN_S)
            client.ping()
            client.api.timeout = WORK_S
            return client
        why = "it may run on another machine, and the lab measures on this one"
    except (DockerException, OSError) as error:
        why = str(error).splitlines()[0][:160]
    raise BackendUnavailable(
        f"no Docker engine of this machine answers at {address or 'its context'} ({why}); start "
        "it, name its socket (DOCKER_HOST=unix:///...), or use --backend process (parameter "
        "backend='process')"
    )


def _context_address() -> str:
    """Return where the engine of the ``docker`` command's context is."""
    from docker.context import ContextAPI
    from docker.context.config import get_current_context_name

    named = os.environ.get("DOCKER_CONTEXT") or get_current_context_name()
    context = ContextAPI.get_context(named)
    if context is None:
        raise FileNotFoundError(f"there is no docker context '{named}'")
    return str(context.Host)
