"""What the lab asks its services itself goes to them alone."""

from __future__ import annotations

import importlib
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from perflab.paths import project_root
from perflab.stacks import asking

PROXIES = ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


class _Counting(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.seen.append(self.path)  # type: ignore[attr-defined]
        body = json.dumps({"who": self.server.name}).encode()  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def serve(name: str) -> HTTPServer:
    server = HTTPServer(("127.0.0.1", 0), _Counting)
    server.name, server.seen = name, []  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.fixture
def service_and_proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[HTTPServer, HTTPServer]]:
    service, proxy = serve("service"), serve("proxy")
    for name in PROXIES:
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.server_port}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    importlib.reload(asking)  # as if the lab were started in this environment
    yield service, proxy
    for server in (service, proxy):
        server.shutdown()
        server.server_close()


def test_what_the_lab_asks_its_services_goes_to_no_proxy(
    service_and_proxy: tuple[HTTPServer, HTTPServer],
) -> None:
    service, proxy = service_and_proxy
    assert asking.ask(service.server_port, "/settings") == {"who": "service"}
    assert asking.answers(service.server_port, "/health")
    assert service.seen == ["/settings", "/health"]  # type: ignore[attr-defined]
    assert proxy.seen == []  # type: ignore[attr-defined]


def test_nothing_in_the_lab_opens_addresses_in_another_way() -> None:
    users = [
        path.name
        for path in (project_root() / "perflab").rglob("*.py")
        if re.search(r"urlopen|urlretrieve|build_opener|install_opener", path.read_text())
    ]
    assert users == ["asking.py"]
