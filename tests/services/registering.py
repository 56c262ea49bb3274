"""The registry's application in this process, behind it a store whose answers can be held up."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from link_ends import Upstream
from running import Service, call, quiet_port, use_packages_of, wait_until

use_packages_of("registry")

import uvicorn  # noqa: E402
from registry.application import create_app  # noqa: E402
from registry.populate import LARGE, VERSION  # noqa: E402
from registry.settings import Settings  # noqa: E402

PATH = f"/performance/{LARGE}/{VERSION}/model.zip"
SIZE = 2_483_400
MODELS = 3
HANDLERS = ("blocking", "threads", "to_thread", "executor", "async", "ranged")
VARIANTS = [*((handler, "buffered") for handler in HANDLERS), ("executor", "streamed")]


class Tap(Upstream):
    """A TCP proxy before the store, which can hold back or cut short its answers.

    ``allowed`` is how many bytes of answers may pass on each connection (None: all of them). What
    is beyond waits for ``pass_all``, or with ``is_cutting`` ends the connection.
    """

    def __init__(self, upstream: int, allowed: int | None = None, is_cutting: bool = False) -> None:
        self.upstream, self.allowed, self.is_cutting = upstream, allowed, is_cutting
        self.open = 0
        self._lock = threading.Lock()
        self._go = threading.Event()
        super().__init__()
        self.serve = self._tapped

    def pass_all(self) -> None:
        """Let all bytes pass, those that were held too."""
        self.allowed = None
        self._go.set()

    def close(self) -> None:
        """End all connections, as a store does that dies."""
        for end in (self._listener, *self.accepted):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _tapped(self, client: socket.socket) -> None:
        with self._lock:
            self.open += 1
        with client:
            server = socket.create_connection(("127.0.0.1", self.upstream))
            threading.Thread(target=_forward, args=(client, server), daemon=True).start()
            with server:
                self._answer(server, client)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        passed = 0
        while data := server.recv(65536):
            if self.allowed is not None and passed + len(data) > self.allowed:
                ahead = max(0, self.allowed - passed)
                client.sendall(data[:ahead])
                if self.is_cutting:
                    break
                self._go.wait()
                passed, data = passed + ahead, data[ahead:]
            client.sendall(data)
            passed += len(data)
        client.shutdown(socket.SHUT_RDWR)


def _forward(client: socket.socket, server: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := client.recv(65536):
            server.sendall(data)
    with contextlib.suppress(OSError):
        server.shutdown(socket.SHUT_RDWR)


@dataclass
class Registry:
    """One running application."""

    port: int
    app: Any

    def counts(self) -> dict[str, Any]:
        return dict(call(self.port, "GET", "/counts").body)

    def until(self, true: Callable[[dict[str, Any]], bool], timeout_s: float = 20.0) -> None:
        wait_until(lambda: true(self.counts()), timeout_s)


@contextlib.contextmanager
def serving(settings: Settings) -> Iterator[Registry]:
    """Run the application under Uvicorn in a thread of this process."""
    port = quiet_port()
    app = create_app(replace(settings, port=port))
    config = uvicorn.Config(
        app, host="127.0.0.1", port=port, http="httptools", ws="none", lifespan="on",
        log_level="warning", timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        wait_until(lambda: server.started or not thread.is_alive(), timeout_s=30)
        assert server.started
        yield Registry(port, app)
    finally:
        server.should_exit = True
        thread.join(timeout=15)


def settings_for(store: Service, tap: Tap | None = None, **wanted: Any) -> Settings:
    """Return settings for a store of the lab, through the tap or straight to it."""
    settings = Settings(
        store_address=f"http://127.0.0.1:{tap.port if tap else store.port}",
        database_address=f"http://127.0.0.1:{store.port}",
        retries=0,
    )
    return replace(settings, **wanted)


def download(port: int, path: str = PATH) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers in lower case, and body; IncompleteRead where it is too short."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.closing(connection):
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, {n.lower(): v for n, v in answer.getheaders()}, answer.read()


def refusal(port: int, path: str = PATH) -> tuple[int, str, dict[str, str]]:
    """Return status, code and headers of an answer that is no model."""
    status, headers, body = download(port, path)
    return status, json.loads(body)["error"]["code"], headers


@contextlib.contextmanager
def asking(port: int, path: str = PATH) -> Iterator[socket.socket]:
    """Ask for a model and read nothing; the client goes at the block's end."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: it\r\n\r\n".encode())
        yield client
