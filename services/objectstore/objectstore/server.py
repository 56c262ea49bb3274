"""Run the store, and a page on another port that tells how it is."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from objectstore import gateway
from objectstore.embedded import Embedded
from objectstore.gateway import Gateway

USER = "perflab"
STORES = ("auto", "moto", "gateway")
LOOK_EVERY_S = 0.2


@dataclass(frozen=True)
class Settings:
    """What the store was started with."""

    host: str
    port: int
    control_port: int
    store: str
    data: Path
    secret: str = field(repr=False)


def from_environment(env: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings; raise ValueError where one cannot be had here."""
    store = env["OBJECTSTORE_STORE"]
    if store not in STORES:
        raise ValueError(f"OBJECTSTORE_STORE = {store!r} must be one of {', '.join(STORES)}")
    if store == "gateway" and not gateway.program():
        raise ValueError(
            "store = gateway needs versitygw, which only the image has: use the backend 'docker', "
            "or store = moto"
        )
    return Settings(
        env["OBJECTSTORE_HOST"],
        int(env["OBJECTSTORE_PORT"]),
        int(env["OBJECTSTORE_CONTROL_PORT"]),
        store,
        Path(env["OBJECTSTORE_DATA"]),
        Path(env["OBJECTSTORE_SECRET_FILE"]).read_text().strip(),
    )


def open_store(settings: Settings) -> Embedded | Gateway:
    """Start what the settings name; ``auto`` is the gateway where there is one."""
    at = (settings.host, settings.port, USER, settings.secret)
    if settings.store == "gateway" or (settings.store == "auto" and gateway.program()):
        return Gateway(*at, settings.data)
    return Embedded(*at)


class Page(BaseHTTPRequestHandler):
    """What the store says of itself."""

    def __init__(self, store: Embedded | Gateway, settings: Settings, *given: object) -> None:
        self._store, self._settings = store, settings
        super().__init__(*given)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        """Answer one of three pages."""
        pages = {"/health": self._health, "/settings": self._in_force, "/counts": self._counts}
        page = pages.get(self.path)
        status, told = page() if page else (404, {"error": f"pages: {', '.join(pages)}"})
        body = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _health(self) -> tuple[int, dict[str, object]]:
        return (200 if self._store.is_ready() else 503), {}

    def _in_force(self) -> tuple[int, dict[str, object]]:
        return 200, {"store": self._settings.store, "engine": self._store.name}

    def _counts(self) -> tuple[int, dict[str, object]]:
        return 200, {**memory(self._store.pids()), "monotonic_ns": time.monotonic_ns()}

    def log_message(self, *given: object) -> None:
        """Say nothing of requests."""


def memory(pids: list[int]) -> dict[str, object]:
    """Return the store's resident memory, now and at its highest. Source: proc(5), status."""
    found = {"VmRSS:": 0, "VmHWM:": 0}
    for pid in pids:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            name = line.split()[0]
            if name in found:
                found[name] += 1024 * int(line.split()[1])
    return {"rss_bytes": found["VmRSS:"], "highest_rss_bytes": found["VmHWM:"]}


def main() -> None:
    """Run until SIGTERM, or until the store ends."""
    wanted = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: wanted.set())
    try:
        settings = from_environment()
    except ValueError as error:
        sys.exit(f"objectstore: {error}")
    store = open_store(settings)
    page = ThreadingHTTPServer(
        (settings.host, settings.control_port), partial(Page, store, settings)
    )
    threading.Thread(target=page.serve_forever, daemon=True).start()
    while not wanted.wait(LOOK_EVERY_S):
        if store.ended():
            sys.exit(f"objectstore: {store.ended()}")
    page.shutdown()
    store.close()


if __name__ == "__main__":
    main()
