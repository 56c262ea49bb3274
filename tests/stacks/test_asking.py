"""The lab's own requests to services go to them alone."""

from __future__ import annotations

import importlib
import re

import pytest

from perflab.paths import project_root
from perflab.stacks import launching
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
        importlib.reload(launching)  # As if the lab had started in this environment.
        assert launching.ask(port, "/settings") == {"who": "service"}
        assert launching.answers(port, "/health")
    assert paths == ["/settings", "/health"]


def test_only_one_module_of_the_lab_opens_addresses() -> None:
    users = [
        path.name
        for path in (project_root() / "perflab").rglob("*.py")
        if re.search(r"urlopen|urlretrieve|build_opener|install_opener", path.read_text())
    ]
    assert users == ["launching.py"]
