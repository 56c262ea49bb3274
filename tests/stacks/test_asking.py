"""The lab's requests go to services alone, and a setting counts only when a service reports it."""

from __future__ import annotations

import importlib
import re
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from perflab.errors import SettingRefused
from perflab.paths import project_root
from perflab.stacks import asking
from perflab.stacks.asking import keeps_connections, status_of
from perflab.stacks.backend import HOST, hold_port
from perflab.stacks.plan import Node
from perflab.stacks.settings import reported
from perflab.stacks.spec import ServiceSpec, is_same, unchecked
from tests.support.answering import answering

PROXIES = ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


def test_the_labs_requests_to_services_go_to_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    paths: list[str] = []

    def answer(_method: str, path: str, _body: bytes) -> tuple[int, str]:
        paths.append(path)
        return 200, '{"who": "service"}'

    with answering(answer) as port, answering(lambda *_: (500, "proxy")) as proxy:
        for name in PROXIES:
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        importlib.reload(asking)  # As if the lab had started in this environment.
        assert asking.ask(port, "/settings") == {"who": "service"}
        assert asking.status_of(port, "/health") == 200
    assert paths == ["/settings", "/health"]


def test_only_one_module_of_the_lab_opens_addresses() -> None:
    users = [
        path.name
        for path in (project_root() / "perflab").rglob("*.py")
        if re.search(r"urlopen|urlretrieve|build_opener|install_opener", path.read_text())
    ]
    assert users == ["asking.py"]


SETTINGS = {
    "threads": {"scope": "start", "type": "integer", "default": 4},
    "color": {"scope": "reload", "type": "string", "default": "red"},
}


@pytest.mark.parametrize(
    ("shown", "planned", "same"),
    [
        ("220", 220, True),
        ("5e-1", 0.5, True),
        (8000, 8000.0, True),
        (None, 0, False),
        ("unlimited", 8000, False),
    ],
)
def test_a_value_is_the_same_however_its_number_is_spelt(
    shown: object, planned: Any, same: bool
) -> None:
    assert is_same(shown, planned) == same


@pytest.mark.parametrize(
    ("shown", "described", "problem"),
    [
        ('{"color": "red"}', {"report": {"http": "/"}},
         r"'it' does not report threads, so .*a path that answ"),
        # Only what is set while it runs cannot go without.
        ("{}", {}, r"does not report color, so .*\[report\] http"),
        ('{"threads": 3, "color": "red"}', {"report": {"http": "/"}},
         r"threads is 3, wanted 4$"),
    ],
    ids=["left out", "reports nothing", "another value"],
)  # fmt: skip
def test_a_setting_with_another_reported_value_is_refused_by_name(
    shown: str, described: dict[str, Any], problem: str
) -> None:
    words = {"name": "teller", "summary": "", "command": ["x"], "health": {}, "settings": SETTINGS}
    spec = ServiceSpec.model_validate(words | described)
    with answering(lambda *_: (200, shown)) as port:
        instance: Any = SimpleNamespace(launch=SimpleNamespace(spec=spec, control_port=port))
        with pytest.raises(SettingRefused, match=problem):
            reported(Node(name="it", service="teller"), instance, lambda _: NotImplemented)


def test_a_service_that_reports_nothing_is_started_and_said_to_be_unchecked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = {"name": "teller", "summary": "", "command": ["x"], "health": {}}
    spec = ServiceSpec.model_validate({**words, "settings": {"threads": SETTINGS["threads"]}})
    instance: Any = SimpleNamespace(launch=SimpleNamespace(spec=spec, control_port=1))
    assert reported(Node(name="it", service="teller"), instance, lambda _: NotImplemented) == {}
    monkeypatch.setattr("perflab.stacks.spec.load_service", lambda _: spec)
    (text,) = unchecked(["teller"])
    assert "teller does not report its settings (threads)" in text


@pytest.mark.parametrize(("does", "is_up"), [("closes", False), ("waits", True), ("greets", True)])
def test_a_server_without_a_path_is_up_when_it_keeps_a_connection(does: str, is_up: bool) -> None:
    with socket.create_server((HOST, 0)) as server, ThreadPoolExecutor() as pool:
        asked = pool.submit(keeps_connections, server.getsockname()[1])
        connection, _ = server.accept()
        if does == "greets":
            connection.sendall(b"220 ready")
        if does == "closes":
            connection.close()
        assert asked.result() == is_up
        connection.close()


@pytest.mark.parametrize("status", [200, 503])
def test_the_status_of_a_body_without_an_end_is_known_when_its_head_is_there(status: int) -> None:
    with socket.create_server((HOST, 0)) as server, ThreadPoolExecutor() as pool:
        asked = pool.submit(status_of, server.getsockname()[1], "/events", 2.0)
        connection, _ = server.accept()
        with connection:
            connection.sendall(f"HTTP/1.1 {status} x\r\n\r\ndata: 1\n\n".encode())
            assert asked.result() == status


@pytest.mark.parametrize(
    ("asked", "found"), [(asking.ask, {"who": "it"}), (status_of, 200)], ids=["ask", "status_of"]
)
def test_early_hints_are_not_taken_for_the_answer(asked: Callable[..., Any], found: Any) -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"
    answer = b'HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{"who": "it"}'
    with socket.create_server((HOST, 0)) as server, ThreadPoolExecutor() as pool:
        told = pool.submit(asked, server.getsockname()[1], "/")
        connection, _ = server.accept()
        with connection:
            connection.recv(1 << 16)
            connection.sendall(hints + answer)
            assert told.result() == found


def test_a_port_at_which_nobody_listens_is_not_up() -> None:
    with hold_port() as held:
        assert not keeps_connections(held.getsockname()[1])
