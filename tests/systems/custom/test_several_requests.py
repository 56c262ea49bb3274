"""What users do is several requests: each has rows, gates and answers of its own."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from perflab import api, systems
from perflab.analysis.gates.first_line import fewest_blocks_of_pairs
from perflab.analysis.gates.thresholds import thresholds_of
from perflab.cli.duel_file import given
from perflab.errors import ParameterError
from perflab.load.workload.mix import filled
from tests.systems.custom.test_variants import checked, problems

SERVICE = """
import json, sys, time
KNOWN = set()
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(200, {"items": [1, 2]})

    def do_POST(self):
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(float(sys.argv[2]))
        self.answer(409 if sent["id"] in KNOWN else 201, {"id": sent["id"]})
        KNOWN.add(sent["id"])

    def answer(self, status, value):
        body = json.dumps(value).encode()
        head = f"HTTP/1.1 {status} OK\\r\\nContent-Type: application/json\\r\\n"
        self.wfile.write(f"{head}Content-Length: {len(body)}\\r\\n\\r\\n".encode() + body)

    def log_message(self, *_):
        pass

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""
REQUESTS = [
    {"name": "list", "weight": 3, "path": "/items?page={random:1-9}"},
    {"name": "create", "path": "/orders", "body": '{"id": "{uuid}"}', "expect_status": 201},
]
FILE = """
[variants]
a = "command:sleep {port}"
b = "command:sleep {port} new"
[[load.requests]]
name = "list"
path = "/"
"""


def variants(folder: Path, slower_s: float) -> dict[str, object]:
    (folder / "app.py").write_text(SERVICE)
    start = f"command:{sys.executable} app.py {{port}}"
    return {
        "variants": [f"old={start} 0.002", f"new={start} {slower_s}"], "folder": str(folder),
        "requests": REQUESTS, "users": 2,
    }  # fmt: skip


@pytest.mark.slow
def test_each_request_has_rows_of_its_own(tmp_path: Path) -> None:
    values = {"blocks": 1, "duration_s": 0.5, "warmup_s": 0.1, "seed": 2, "design": "trials"}
    run = api.run("custom_service", {**values, **variants(tmp_path, 0.02)})
    means = run.trials().set_index("treatment")[["of_create_mean_ms", "of_list_mean_ms"]]
    slower = means.loc["variant=new"] / means.loc["variant=old"]
    assert (run.trials()["of_create_failure_share"] == 0).all(), "no key is sent twice"
    assert run.trials()["answer_digest"].nunique() == 1, "the keys in answers are no difference"
    assert slower["of_create_mean_ms"] > 3
    assert slower["of_create_mean_ms"] > slower["of_list_mean_ms"]


def test_a_gate_may_name_a_request_of_the_load_and_no_other(tmp_path: Path) -> None:
    file = tmp_path / "duel.toml"
    file.write_text(FILE)
    (threshold,) = thresholds_of(["list:p99>1.1"])
    assert threshold.response == "of_list_p99_ms"
    values, bounds, _ = given("custom_service", str(file), {}, "", ["list:p99>1.1"])
    assert bounds == ["list:p99>1.1"]
    assert values["requests"] == [{"name": "list", "path": "/"}]
    with pytest.raises(ParameterError, match=r"no request 'lits' \(did you mean 'list'\?\)"):
        given("custom_service", str(file), {}, "", ["lits:p99>1.1"])
    with pytest.raises(ParameterError, match="not known of one request alone"):
        thresholds_of(["list:cpu>1.1"])


def test_the_family_of_the_first_line_grows_with_the_requests(tmp_path: Path) -> None:
    values = variants(tmp_path, 0.0)
    one, two = checked(**{**values, "requests": []}), checked(**values)
    assert fewest_blocks_of_pairs(1, 2) > fewest_blocks_of_pairs(1)
    assert two.blocks >= one.blocks
    assert two.blocks > fewest_blocks_of_pairs(1, 2)
    named = [item.response for item in systems.experiment("custom_service").contrasts(two)]
    assert "of_create_failure_share" in named


def test_requests_are_refused_where_they_contradict_or_hold_a_mistake(tmp_path: Path) -> None:
    values = variants(tmp_path, 0.0)
    assert "give requests, or path, not both" in problems(**{**values, "path": "/x"})
    twice = [REQUESTS[0], {**REQUESTS[1], "name": "list"}]
    assert "two requests have one name" in problems(**{**values, "requests": twice})
    typo = [{"name": "list", "paht": "/"}]
    assert "paht" in problems(**{**values, "requests": typo})
    missing = [{"name": "list", "path": "/find?q={line:words.txt}"}]
    assert f"{tmp_path}/words.txt" in problems(**{**values, "requests": missing})


@pytest.mark.promise
def test_a_login_takes_its_credentials_from_files_beside_the_duel(tmp_path: Path) -> None:
    for name in ("user", "password", "token"):
        lines = "".join(f"{name}-{number}\n" for number in range(9))
        (tmp_path / f"{name}s.txt").write_text(lines)
    login = {
        "name": "login", "path": "/login?token={line:tokens.txt}",
        "headers": {"Authorization": "Bearer {line:tokens.txt}", "X-Token": "{line:tokens.txt}"},
        "body": '{"name": "{line:users.txt}", "password": "{line:passwords.txt}"}',
    }  # fmt: skip
    values = {**variants(tmp_path, 0.0), "requests": [login]}
    plan = systems.experiment("custom_service").treatments(checked(**values))
    request = plan[0].workload.with_credentials().mix[0].request
    numbers, seen = random.Random(1), set[str]()
    for _ in range(50):
        sent = filled(request, numbers, user=0)
        line = sent.path.removeprefix("/login?token=token-")
        token = f"token-{line}"
        assert sent.headers == {"Authorization": f"Bearer {token}", "X-Token": token}
        assert sent.body == f'{{"name": "user-{line}", "password": "password-{line}"}}'
        seen.add(line)
    assert seen == set("012345678")
    missing = {**login, "body": '{"password": "{line:none.txt}"}'}
    assert f"{tmp_path}/none.txt" in problems(**{**values, "requests": [missing]})


PHOTO = bytes(range(256))
TAKES = """
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Answer(BaseHTTPRequestHandler):
    protocol_version, wbufsize = "HTTP/1.1", -1

    def do_GET(self):
        self.send_error(404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        is_right = body == bytes(range(256)) and self.path[1:].isdecimal()
        is_right &= self.headers["Content-Type"] == "application/octet-stream"
        self.send_response(200 if is_right else 422)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""


@pytest.mark.slow
def test_the_bytes_of_a_file_are_sent_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(TAKES)
    (tmp_path / "photo.jpg").write_bytes(PHOTO)
    start = f"command:{sys.executable} app.py {{port}}"
    file = tmp_path / "duel.toml"
    file.write_text(
        f"[variants]\na = '{start}'\nb = '{start} new'\n"
        '[[load.requests]]\nname = "upload"\npath = "/{random:1-9}"\nbody = "@photo.jpg"\n'
    )
    values, _, _ = given("custom_service", str(file), {"blocks": 1, "users": 1}, "")
    run = api.run("custom_service", {**values, "duration_s": 0.3, "warmup_s": 0.1})
    assert (run.trials()["failure_share"] == 0).all(), run.trials()["reasons"].tolist()
    alone = checked(variants=[f"a={start}", f"b={start} x"], body=f"@{tmp_path}/photo.jpg")
    assert alone.workload("").request.bodies == (PHOTO,)
    assert "no-such" in problems(**variants(tmp_path, 0.0), body=f"@{tmp_path}/no-such")


@pytest.mark.promise
def test_a_credential_of_one_request_is_kept_by_reference(tmp_path: Path) -> None:
    request = {
        "name": "login", "path": "/login?token=hunter2-query",
        "headers": {"Authorization": "Bearer hunter2-header", "X-Kind": "shown"},
        "body": '{"password": "hunter2-body", "id": "{uuid}"}',
    }  # fmt: skip
    parameters = checked(**{**variants(tmp_path, 0.0), "requests": [request]})
    plan = systems.experiment("custom_service").treatments(parameters)
    written = parameters.model_dump_json() + "".join(item.model_dump_json() for item in plan)
    assert "hunter2" not in written
    assert "shown" in written
    sent = plan[0].workload.with_credentials().mix[0].request
    assert sent.path == "/login?token=hunter2-query"
    assert sent.headers["Authorization"] == "Bearer hunter2-header"
    assert '"password": "hunter2-body"' in str(sent.body)
