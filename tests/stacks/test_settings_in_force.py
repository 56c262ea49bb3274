"""A setting is believed when the service itself shows it, and refused when it does not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from perflab.errors import SettingRefused
from perflab.host.placing import placement
from perflab.stacks import leftovers, spec
from perflab.stacks.choice import choose
from perflab.stacks.database import _in_unit
from perflab.stacks.plan import Node, StackPlan
from perflab.stacks.residents import Residents
from perflab.stacks.spec import is_same, load_service, service_names

# Shows what SHOWN says of its settings, whatever they were.
SERVER = """
import http.server, os, sys
class Says(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(os.environ["SHOWN"].encode())
    def log_message(self, *_):
        pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Says).serve_forever()
"""
DESCRIPTION = """
name = "teller"
summary = "tells what it is told to tell"
command = ["{{python}}", "{{source}}/server.py", "{{port}}"]
environment = {{ SHOWN = '{shown}' }}
docker = {{ python = "python3", source = "/srv" }}
health = {{ http = "/" }}
{report}
[settings]
threads = {{ scope = "start", type = "integer", default = 4 }}
color = {{ scope = "reload", type = "string", default = "red" }}
answer = {{ scope = "request", type = "string", default = "short" }}
"""


def teller(folder: Path, shown: str, report: str = 'report = { http = "/" }') -> StackPlan:
    (folder / "teller").mkdir(parents=True)
    (folder / "teller" / "server.py").write_text(SERVER)
    described = DESCRIPTION.format(shown=shown, report=report)
    (folder / "teller" / "service.toml").write_text(described)
    return StackPlan(nodes=(Node(name="it", service="teller"),))


def activated(plan: StackPlan) -> dict[str, Any]:
    name = f"settings-{os.getpid()}"
    residents = Residents(choose("process"), {"plan": plan}, placement(), name)
    residents.prepare()
    residents.start()
    try:
        residents.activate("plan")
        return residents.reported["plan"]
    finally:
        residents.stop()
        assert leftovers.everything() == []


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(spec, "services_dir", lambda: tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("shown", "wanted", "same"),
    [
        ("220", 220, True),
        ("5e-1", 0.5, True),
        (8000, 8000.0, True),
        (True, 1, False),
        (None, 0, False),
        ([1], 1, False),
        ("unlimited", 8000, False),
    ],
)
def test_a_value_is_the_same_however_its_number_is_spelt(
    shown: object, wanted: Any, same: bool
) -> None:
    assert is_same(shown, wanted) == same


@pytest.mark.slow
def test_a_setting_that_is_left_out_is_refused_by_name_with_the_way_out(services: Path) -> None:
    plan = teller(services, '{"color": "red"}')
    with pytest.raises(SettingRefused, match=r"'it' does not report threads: .*let its GET / answ"):
        activated(plan)


@pytest.mark.slow
def test_a_service_that_reports_nothing_is_refused(services: Path) -> None:
    with pytest.raises(SettingRefused, match=r"does not report threads, color: .*\[report\] http"):
        activated(teller(services, "{}", report=""))


@pytest.mark.slow
def test_another_value_than_wanted_is_refused_with_both(services: Path) -> None:
    plan = teller(services, '{"threads": 3, "color": "red"}')
    with pytest.raises(SettingRefused, match=r"threads is 3, wanted 4$"):
        activated(plan)


def test_every_service_with_settings_says_where_it_reports_them() -> None:
    for name in service_names():
        spec = load_service(name)
        assert (spec.report is None) == (not spec.settings), name


def test_sizes_of_postgres_are_read_in_the_unit_of_the_setting() -> None:
    assert _in_unit("16384", "8kB", "MB") == 128
    assert _in_unit("100", "8kB", "MB") == 0.78125
    assert _in_unit("4", "MB", "kB") == 4096
    assert _in_unit("220", "", "") == "220"
    assert _in_unit("0", "ms", "MB") == "0"
