"""What users do is a script: the same users for all variants, and rows by their requests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perflab import api
from perflab.analysis.doubts.unseen_answers import unlike
from perflab.analysis.evaluation import evaluate
from perflab.analysis.gates.first_line import fewest_blocks_of_pairs
from perflab.cli.duel_file import given
from perflab.errors import ParameterError
from perflab.load.workers.script_names import request_names
from perflab.reports.duel_notes import notes
from perflab.reports.duel_pairs import pairs_of
from perflab.reports.duel_table import result_table
from tests.support.typing_in import perflab
from tests.systems.custom.test_variants import checked, problems

SERVICE = """
import sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Answer(BaseHTTPRequestHandler):
    protocol_version, wbufsize = "HTTP/1.1", -1

    def do_GET(self):
        time.sleep(0.004)
        known = "session=s" in self.headers.get("Cookie", "")
        self.answer(200 if known or self.path == "/" else 401, '{"items": [1]}')

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/orders":
            time.sleep(float(sys.argv[2]))
        self.answer(201, sys.argv[3])

    def answer(self, status, text):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if self.path == "/login":
            self.send_header("Set-Cookie", "session=s%s; Path=/; HttpOnly" % time.time())
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""
SCRIPT = """
from perflab.load.users import User, action

print("a script may print")

class Shopper(User):
    async def on_start(self):
        await self.post("/login", {"user": self.number}, name="login", expect_status=201)

    @action(weight=3)
    async def browse(self):
        await self.get(f"/items/{self.random.randrange(9)}", name="list")

    @action
    async def buy(self):
        await self.post("/orders", {"n": 1}, name="create", expect_status=201)

class Talker(Shopper):
    async def on_start(self):
        print("user", self.number, "signs in", flush=True)
        await super().on_start()

class Wanderer(Shopper):
    @action
    async def browse(self):
        await self.get("/")
        await self.get(f"/items/{self.number}")
"""
OPTIONS: dict[str, Any] = {"blocks": 3, "duration_s": 0.5, "warmup_s": 0.2, "seed": 2, "users": 2}


def variants(folder: Path, slower_s: float = 0.0, answer: str = '{"id": 1}') -> dict[str, Any]:
    (folder / "app.py").write_text(SERVICE)
    (folder / "shop.py").write_text(SCRIPT)
    start = f"command:{sys.executable} app.py {{port}}"
    return {
        "variants": [f"old={start} 0.002 '{{\"id\": 1}}'", f"new={start} {slower_s} '{answer}'"],
        "folder": str(folder), "script": f"{folder}/shop.py:Shopper",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.promise
def test_users_of_a_script_sign_in_and_their_slower_request_is_found(tmp_path: Path) -> None:
    run = api.run("custom_service", {**OPTIONS, **variants(tmp_path, 0.02)})
    trials = run.trials()
    assert "failed" not in set(trials["state"]), trials["reasons"].tolist()
    # Without its cookie nobody gets a list.
    assert (trials["failure_share"] == 0).all()
    means = trials.groupby("treatment")[["of_create_mean_ms", "of_list_mean_ms"]].median()
    slower = means.loc["variant=new"] / means.loc["variant=old"]
    assert slower["of_create_mean_ms"] > 3
    assert slower["of_create_mean_ms"] > slower["of_list_mean_ms"]
    (pair,) = pairs_of(evaluate(run), (), ())
    rows = [*result_table(run, [pair])["response"]]
    assert rows[0].startswith("throughput")
    assert {"list:mean, ms", "create:p99, ms", "create:failures, %"} <= set(rows)
    assert not [row for row in rows if "login" in row], "nobody signs in while it counts"
    assert run.record.design is not None
    assert not run.record.shares_time
    assert any("users of a script keep state" in line for line in notes(run, [pair]))
    # On a busy machine no trial may count.
    answers = run.table("answers", [*trials["trial_id"]])
    assert set(answers["request"]) == {"list", "create"} | ({"login"} & set(answers["request"]))
    assert unlike(run) == []


def test_names_that_stand_as_text_have_rows_and_others_are_told(tmp_path: Path) -> None:
    values = variants(tmp_path)
    shop = f"{tmp_path}/shop.py"
    assert request_names(f"{shop}:Shopper") == (("list", "create"), True)
    assert request_names(f"{shop}:Wanderer") == (("GET /", "create"), False)
    two = checked(**values)
    assert two.blocks > fewest_blocks_of_pairs(1, 2)
    file = tmp_path / "duel.toml"
    file.write_text(
        '[variants]\na = "command:cat {port}"\nb = "command:cat {port} new"\n'
        '[load]\nscript = "shop.py:Wanderer"\n'
    )
    kept, bounds, _ = given("custom_service", str(file), {}, "", ["GET /:p99>1.1"])
    assert kept["script"] == f"{shop}:Wanderer"
    assert bounds == ["GET /:p99>1.1"]
    with pytest.raises(ParameterError, match=r"no request 'crate' \(did you mean 'create'\?\)"):
        given("custom_service", str(file), {}, "", ["crate:p99>1.1"])


def test_a_script_is_refused_before_anything_starts_where_it_cannot_be_used(tmp_path: Path) -> None:
    values = variants(tmp_path)
    assert "has no class Shoper" in problems(**{**values, "script": f"{tmp_path}/shop.py:Shoper"})
    (tmp_path / "broken.py").write_text("import nothing_of_that_name\n")
    told = problems(**{**values, "script": f"{tmp_path}/broken.py:Shopper"})
    assert "No module named 'nothing_of_that_name'" in told
    assert "give script, or path, rate, not both" in problems(**values, path="/x", rate=20)
    assert "scripted users, who keep state" in command(tmp_path, "--design", "slices").stderr


def command(folder: Path, *words: str, **changed: Any) -> subprocess.CompletedProcess[str]:
    """Run a duel of two variants, with a script that prints."""
    values = variants(folder, **changed)
    given = [word for text in values["variants"] for word in ("--variant", text)]
    return perflab("duel", *given, "--script", "shop.py:Talker", *words, cwd=folder)


@pytest.mark.slow
def test_what_a_script_prints_gets_into_no_answer_and_another_reply_is_told(tmp_path: Path) -> None:
    words = ("--blocks", "1", "--duration", "0.5", "--warmup", "0.2", "--users", "2", "--json")
    done = command(tmp_path, *words, slower_s=0.002, answer="[]")
    assert done.stdout.startswith("{\n"), done.stdout + done.stderr
    assert "a script may print" not in done.stdout
    assert "signs in" not in done.stdout
    assert "user 0 signs in" in done.stderr
    run = api.open_run(json.loads(done.stdout)["run"])
    assert [text for text in unlike(run) if "to create" in text] == [
        "new and old give different answers to create. They may not do the same work."
    ]
    assert not [text for text in unlike(run) if "to list" in text]
