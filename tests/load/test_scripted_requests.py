"""Scripted users who cannot begin, send side by side, are redirected, or have a secret path."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from perflab.load.checks.selfcheck import check
from perflab.load.records.result import LoadResult
from perflab.load.workers.script_names import request_names
from perflab.load.workload import Request, Scripted, Workload
from tests.load.clients.hostile import OK, Hostile, Part, Script, beside
from tests.load.planted import load_result, scripted
from tests.load.processes import a_worker, served

SCRIPT = """
import asyncio
from perflab.load.users import User, action

class HalfIn(User):
    wait_s = 0.02
    async def on_start(self):
        if self.number % 2:
            {}["token"]
    @action
    async def ask(self):
        await self.get("/")

class Page(User):
    wait_s = 0.02
    @action
    async def open(self):
        await asyncio.gather(self.get("/a"), self.get("/b"))

class Redirected(User):
    @action
    async def sign_in(self):
        await self.get("/login", redirects=1)
        await self.get("/away", redirects=1)

class WithToken(User):
    @action
    async def page(self):
        await self.get("/items?access_token=abcd12345678&page=2")
        await self.request("POST", "/items?access_token=abcd12345678", body="{}")
"""


def sent_to(url: str, folder: Path, kind: str, **arrivals: object) -> tuple[LoadResult, Workload]:
    (folder / "users.py").write_text(SCRIPT)
    words = {"script": f"{folder}/users.py:{kind}", "duration_s": 0.5, **arrivals}
    work = Workload(request=Request(), arrivals=Scripted.model_validate(words), timeout_s=5.0)
    with a_worker() as generator:
        return generator.run(work, url), work


def load(folder: Path, kind: str, **arrivals: object) -> tuple[LoadResult, Workload]:
    with served("0.002") as port:
        return sent_to(f"http://127.0.0.1:{port}", folder, kind, **arrivals)


@pytest.mark.promise
def test_a_load_with_users_who_never_began_is_not_the_one_asked_for(tmp_path: Path) -> None:
    result, work = load(tmp_path, "HalfIn", users=4, warmup_s=0.2)
    assert result.users_lost == 2
    told = [reason for reason in check(result, work).reasons if reason.code == "load.users_lost"]
    assert [str(reason) for reason in told]
    assert "2 of 4 users did not get beyond on_start (KeyError in on_start: 'token')" in told[0]
    result.discard()


def test_few_users_who_never_began_are_told(tmp_path: Path) -> None:
    work = scripted(users=100)
    result = load_result(tmp_path, np.linspace(1, 99, 500), users_lost=2)
    judged = check(result, work)
    assert "load.users_lost" not in {reason.code for reason in judged.reasons}
    assert "2 of 100 users did not get beyond on_start" in {
        remark.text for remark in judged.warnings
    }


def test_requests_that_a_user_sends_side_by_side_are_all_answered(tmp_path: Path) -> None:
    result, _ = load(tmp_path, "Page", users=1)
    table = result.requests
    assert set(table["error"]) == {""}
    assert set(table["template"]) == {"GET /a", "GET /b"}
    result.discard()


@pytest.mark.promise
def test_a_credential_in_the_path_of_a_script_is_in_no_name_of_a_request(
    tmp_path: Path,
) -> None:
    result, _ = load(tmp_path, "WithToken", users=1, actions=1)
    names, are_all = request_names(f"{tmp_path}/users.py:WithToken")
    assert are_all
    assert "abcd12345678" not in str(names)
    assert set(result.requests["template"]) == set(names)
    result.discard()


def cookies_of(hostile: Hostile) -> list[tuple[str, str]]:
    """Return path and cookies of each request that a server got."""
    heads = [request.decode().split("\r\n") for request in hostile.requests]
    sent = [[line for line in head if line.startswith("Cookie: ")] for head in heads]
    return [(head[0].split()[1], "".join(lines)) for head, lines in zip(heads, sent, strict=True)]


def moved(to: str, cookie: str) -> bytes:
    head = f"HTTP/1.1 302 Found\r\nLocation: {to}\r\nSet-Cookie: {cookie}; Path=/\r\n"
    return f"{head}Content-Length: 0\r\n\r\n".encode()


@pytest.mark.promise
def test_cookies_of_a_redirect_go_with_all_that_follows_it_and_to_no_other_server(
    tmp_path: Path,
) -> None:
    other = Hostile([Script((Part(OK),), "keep")])
    with beside(other) as away:
        routes = {b"/login": moved("/home", "sid=1"), b"/away": moved(f"{away}/", "sid=2")}
        home = Hostile([Script((Part(OK),), "keep", routes=routes)])
        with beside(home) as url:
            result, _ = sent_to(url, tmp_path, "Redirected", users=1, actions=2, duration_s=2.0)
    assert set(result.requests["error"]) == {""}
    assert cookies_of(home) == [
        ("/login", ""), ("/home", "Cookie: sid=1"), ("/away", "Cookie: sid=1"),
        ("/login", "Cookie: sid=2"), ("/home", "Cookie: sid=1"), ("/away", "Cookie: sid=1"),
    ]  # fmt: skip
    assert cookies_of(other) == [("/", "")] * 2
    result.discard()
