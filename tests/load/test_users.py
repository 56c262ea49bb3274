"""Scripted users: many in one worker, recorded like any load, and none can end the others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perflab.errors import ParameterError
from perflab.load.generator import Generator
from perflab.load.result import LoadResult
from perflab.load.selfcheck import check
from perflab.load.users import Answer, User, action, actions, find
from perflab.load.workload import Request, Scripted, Workload

SCRIPT = """
import asyncio
import time
from perflab.load.messages import RECEIVED, SENT
from perflab.load.users import User, action

class Shopper(User):
    wait_s = (0.05, 0.15)
    async def on_start(self):
        answer = await self.post("/login", {"user": self.number}, name="login")
        assert answer.ok and answer.json()["label"] == 1
        self.headers["X-User"] = str(self.number)
    @action(weight=9)
    async def browse(self):
        await self.get("/items", name="browse", expect_body="label")
    @action
    async def buy(self):
        await self.get("/basket", name="basket")
        await self.post("/orders", {"n": 1}, name="order")

class Broken(User):
    wait_s = 0.05
    @action
    async def fine(self):
        await self.get("/")
        if self.number == 3:
            raise ValueError("number three")

class NoLogin(User):
    async def on_start(self):
        raise RuntimeError("no login")
    @action
    async def never(self):
        await self.get("/never")

class Chatter(User):
    wait_s = 0.05
    async def on_start(self):
        self.got = asyncio.Event()
        self.socket = await self.websocket("/echo", self.hear, deflate=self.parameters["deflate"])
    def hear(self, data, at_ns):
        self.note(RECEIVED, len(data), at_ns, key=int(data))
        self.got.set()
    @action
    async def talk(self):
        key = time.monotonic_ns()
        self.got.clear()
        self.note(SENT, len(str(key)), self.socket.send(str(key).encode()), key=key)
        async with asyncio.timeout(2):
            await self.got.wait()
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("script") / "shop.py"
    path.write_text(SCRIPT)
    return str(path)


def served(program: str, *words: str) -> Iterator[int]:
    child = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name(program)), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdout is not None
    yield int(child.stdout.readline())
    child.kill()
    child.wait()
    child.stdout.close()


@pytest.fixture
def server() -> Iterator[int]:
    yield from served("server.py", "0.002", "good")


@pytest.fixture(scope="module")
def chat() -> Iterator[int]:
    yield from served("websocket_server.py", "deflate")


def load(port: int, script: str, **arrivals: object) -> tuple[LoadResult, Workload]:
    words = {"kind": "scripted", "script": script, "users": 20, "duration_s": 1.0, **arrivals}
    work = Workload(request=Request(), arrivals=Scripted.model_validate(words))
    generator = Generator(sorted(os.sched_getaffinity(0))[-1:], {})
    try:
        generator.start()
        return generator.run(work, f"http://127.0.0.1:{port}"), work
    finally:
        generator.close()


def test_weighted_actions_are_recorded_under_their_names(server: int, script: str) -> None:
    result, work = load(server, f"{script}:Shopper")
    table = result.requests
    assert (table["error"] == "").all()
    counts = table["template"].value_counts()
    assert counts["login"] == 20
    assert counts["browse"] > 3 * counts["order"]
    assert counts["basket"] == counts["order"]
    assert (table["started_ns"] >= table["planned_ns"]).all()
    assert result.failures == []
    result.discard()
    assert work.bound_s == 1.0


def test_five_hundred_users_fit_into_one_worker(server: int, script: str) -> None:
    result, work = load(server, f"{script}:Shopper", users=500, duration_s=2.0, join_s=0.001)
    table = result.requests
    assert table["user"].nunique() == 500
    assert (table["error"] == "").mean() > 0.99
    assert check(result, work).cpu_us_per_request > 0
    result.discard()


def test_one_users_failure_is_recorded_and_ends_nobody(server: int, script: str) -> None:
    result, work = load(server, f"{script}:Broken", users=5)
    table = result.requests
    failed = table[table["error"] == "script"]
    assert set(failed["user"]) == {3}
    assert table[table["error"] == ""]["user"].nunique() == 5
    assert "number three" in result.failures[0]
    assert any("script" in reason for reason in check(result, work).reasons)
    result.discard()


def test_a_login_that_fails_is_the_end_of_that_user(server: int, script: str) -> None:
    result, _ = load(server, f"{script}:NoLogin", users=4)
    assert set(result.requests["error"]) == {"script"}
    assert len(result.requests) == 4
    result.discard()


@pytest.mark.parametrize("deflate", [False, True])
def test_messages_of_users_are_recorded_both_ways(chat: int, script: str, deflate: bool) -> None:
    result, _ = load(chat, f"{script}:Chatter", parameters={"deflate": deflate}, users=10)
    table = result.messages
    assert result.failures == []
    sent = table[table["direction"] == "sent"].set_index("key")
    received = table[table["direction"] == "received"].set_index("key")
    assert len(sent) > 100
    assert len(received) >= len(sent) - 10
    delays = (received["at_ns"] - sent["at_ns"]).dropna()
    assert delays.min() > 0
    result.discard()


def test_the_choice_of_actions_depends_on_seed_and_user_only() -> None:
    class One(User):
        @action
        async def a(self) -> None: ...

        @action(3)
        async def b(self) -> None: ...

    assert actions(One) == (["a", "b"], [1.0, 3.0])
    draws = [One(7, 1, {}).random.random(), One(7, 1, {}).random.random()]
    assert draws[0] == draws[1]
    assert One(8, 1, {}).random.random() != draws[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nothing", "not FILE.py:Class"),
        ("/no/such.py:X", "FileNotFoundError"),
        ("perflab.load.users:Answer", "no class Answer that is a perflab User"),
        ("perflab.load.users:User", "no method marked"),
    ],
)
def test_a_script_that_cannot_be_used_is_refused(name: str, text: str) -> None:
    with pytest.raises(ParameterError, match=text):
        find(name)
    assert Answer(200, "").ok
