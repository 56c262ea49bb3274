"""Stacks are filled, emptied and counted for real, in both backends; who refuses is named."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

from perflab.errors import HookFailed, RunInterrupted, ServiceFailed
from perflab.stacks import database, hooks, leftovers
from perflab.stacks.plan import Node, Seed, StackPlan
from tests.stacks.asking import residents_of, started

MADE = Seed(node="db", command=("sh", "-c", "mkdir {data}/../made-once"))
COUNT = "SELECT count(*) FROM models"


def plan(**asked: Any) -> StackPlan:
    nodes = (Node(name="db", service="postgres", placement="database"),)
    return StackPlan(nodes=nodes, database="db", **asked)


def both(stack: StackPlan) -> dict[str, StackPlan]:
    """Two treatments share the server: a second seeding would find the folder there, and fail."""
    return {"it": stack, "other": stack}


@pytest.mark.slow
def test_a_stack_is_seeded_once_per_start_reset_and_counted() -> None:
    stack = plan(seed=(MADE,), reset=("DELETE FROM models WHERE id > 5", "CHECKPOINT"), count=COUNT)
    for _ in range(2):
        with started("process", both(stack)) as residents:
            line = residents.database("it")
            assert line is not None
            line.rows("CREATE TABLE models (id integer PRIMARY KEY)")
            line.rows("INSERT INTO models SELECT generate_series(1, 6)")
            assert residents.count("it") == 6
            residents.reset("it")
            assert residents.count("other") == 5


@pytest.mark.slow
def test_what_fails_is_named_with_its_answer_and_in_time(
    backend_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "STATEMENT_TIMEOUT_MS", 500)
    stack = plan(reset=("TRUNCATE nothing",), count=COUNT)
    slow = Seed(node="db", command=("sleep", "60"), timeout_s=0.5)
    with started(backend_name, {"it": stack}) as residents:
        with pytest.raises(HookFailed, match=r"reset of the database \(TRUNCATE.*does not exist"):
            residents.reset("it")
        with pytest.raises(HookFailed, match=r"count of the database .*does not exist"):
            residents.count("it")
        server, line = residents.instance("it", "db"), residents.database("it")
        assert line is not None
        began = time.monotonic()
        with pytest.raises(HookFailed, match=r"took longer than 0\.5 s"):
            hooks.fill(slow, server, lambda: "")
        with pytest.raises(HookFailed, match="statement timeout"):
            hooks.empty(["SELECT pg_sleep(60)"], line, server)
        with pytest.raises(RunInterrupted, match="enough"):
            hooks.fill(slow.model_copy(update={"timeout_s": 60.0}), server, lambda: "enough")
        assert time.monotonic() - began < 50, "each would take a minute"


@pytest.mark.slow
def test_a_stack_that_cannot_be_seeded_is_stopped() -> None:
    broken = Seed(node="db", command=("sh", "-c", "echo lost >&2; exit 3"))
    residents = residents_of("process", {"it": plan(seed=(broken,))})
    with pytest.raises(HookFailed, match=r"seed of node 'db': .*lost"):
        residents.start()
    assert leftovers.everything() == []


class Spoken(BaseHTTPRequestHandler):
    """Answers as the test's list says, and keeps what it was asked."""

    answers: list[tuple[int, str]]
    asked: list[str]

    def do_POST(self) -> None:
        self.asked.append(self.path)
        status, text = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass


Forget = Callable[..., None]


@pytest.fixture
def forget() -> Iterator[Forget]:
    """Let a service forget that answers as ``Spoken`` says."""
    Spoken.answers, Spoken.asked = [], []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Spoken)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def asked(interrupted: Callable[[], str] = lambda: "", ended: str = "") -> None:
        labels = SimpleNamespace(service="web-2")
        spec = SimpleNamespace(reset=SimpleNamespace(http="/reset"))
        launch = SimpleNamespace(control_port=server.server_port, labels=labels, spec=spec)
        instance: Any = SimpleNamespace(
            launch=launch, exit_reason=lambda: ended, log=lambda: "its log"
        )
        hooks.forget("web", instance, interrupted)

    yield asked
    server.shutdown()
    server.server_close()


def test_a_busy_service_is_asked_again_until_the_time_is_up(
    forget: Forget, monkeypatch: pytest.MonkeyPatch
) -> None:
    Spoken.answers = [(409, "busy"), (409, "busy"), (204, "")]
    forget()
    assert Spoken.asked == ["/reset"] * 3
    Spoken.answers = [(409, "still busy")]
    with pytest.raises(RunInterrupted, match=r"during the reset of node 'web'.*: enough"):
        forget(interrupted=lambda: "enough" if len(Spoken.asked) > 5 else "")
    monkeypatch.setattr(hooks, "RESET_WITHIN_S", 0.4)
    with pytest.raises(HookFailed, match=r"answered 409: 'still busy'"):
        forget()


def test_a_dead_service_is_told_as_dead_with_its_log(forget: Forget) -> None:
    Spoken.answers = [(500, "")]
    with pytest.raises(ServiceFailed, match=r"'web-2': was ended by SIGKILL[\s\S]*its log"):
        forget(ended="was ended by SIGKILL")
