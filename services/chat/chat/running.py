"""What really runs: read from the parts themselves, not from the settings."""

from __future__ import annotations

import asyncio
import importlib
import os
import platform
import sys
from importlib.metadata import version

from fastapi import FastAPI

LIBRARIES = (
    "argon2-cffi",
    "bcrypt",
    "fastapi",
    "msgpack",
    "msgspec",
    "orjson",
    "protobuf",
    "starlette",
    "uvicorn",
    "uvloop",
    "websockets",
    "wsproto",
)
WEBSOCKETS = {
    "WebSocketProtocol": "websockets",
    "WebSocketsSansIOProtocol": "websockets-sansio",
    "WSProtocol": "wsproto",
}


def in_force(app: FastAPI) -> dict[str, object]:
    """Return the settings in force; where a part can be asked, it is."""
    settings, server = app.state.settings, app.state.server
    loop = type(asyncio.get_running_loop())
    implementation = server.ws_protocol_class
    return {
        **settings.public(),
        "loop": "uvloop" if loop.__module__.startswith("uvloop") else "asyncio",
        "cprofile": "on" if _is_profiled() else "off",
        "deflate": "on" if server.ws_per_message_deflate else "off",
        "websocket": WEBSOCKETS.get(implementation.__name__, implementation.__name__),
        "largest_frame_bytes": server.ws_max_size,
        "loop_class": f"{loop.__module__}.{loop.__qualname__}",
        "websocket_class": f"{implementation.__module__}.{implementation.__qualname__}",
        "protobuf_backend": importlib.import_module("chat.codecs.protocol_buffers").BACKEND,
        "hashing": app.state.hashing.facts,
        "sqlite": app.state.store.facts(),
        "cores": sorted(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in LIBRARIES},
    }


def _is_profiled() -> bool:
    """Ask the interpreter whether this thread runs under a profiler (from 3.12 on another way)."""
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None and monitoring.get_tool(monitoring.PROFILER_ID):
        return True
    return sys.getprofile() is not None
