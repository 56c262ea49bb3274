"""Hooks carried out for real: on PostgreSQL, over HTTP, and as commands, in both backends."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflab.errors import HookFailed, RunInterrupted, ServiceFailed
from perflab.host.placing import placement
from perflab.stacks import leftovers
from perflab.stacks.choice import choose
from perflab.stacks.hook_calls import HookCall, _whole
from perflab.stacks.hooks import CommandHook, Hook, HttpHook, SqlHook
from perflab.stacks.plan import Node, StackPlan
from perflab.stacks.residents import Residents

MADE = "CREATE TABLE models (id integer PRIMARY KEY)"
FILL = "INSERT INTO models SELECT generate_series(1, 5)"
COUNT = SqlHook(node="db", statements=("SELECT count(*) FROM models",))
EMPTY = SqlHook(node="db", statements=("DELETE FROM models WHERE id > 5", "CHECKPOINT"))
PRINTS_THREE = CommandHook(node="db", command=("{python}", "-c", "print(3)"))


def plan(*seed: Hook, **hooks: tuple[Hook, ...]) -> StackPlan:
    nodes = (Node(name="db", service="postgres", placement="database"),)
    return StackPlan(nodes=nodes, seed=seed, **hooks)


@pytest.mark.slow
def test_a_stack_is_seeded_once_per_start_reset_and_counted(backend_name: str) -> None:
    seed = SqlHook(node="db", statements=(MADE, FILL))
    seeded = plan(seed, reset=(EMPTY,), count=(COUNT, PRINTS_THREE))
    # Two treatments share the server: a second seeding would find the table there, and fail.
    both = {"it": seeded, "other": seeded}
    residents = Residents(choose(backend_name), both, placement(), f"hooks-{os.getpid()}")
    residents.prepare()
    try:
        for _ in range(2):
            residents.start()
            residents.activate("it")
            assert residents.count("it") == 5 + 3
            carried_out(
                residents, SqlHook(node="db", statements=("INSERT INTO models VALUES (9)",))
            )
            assert residents.count("it") == 6 + 3
            residents.reset("it")
            assert residents.count("other") == 5 + 3
            residents.stop()
    finally:
        residents.stop()
    assert leftovers.everything() == []


def carried_out(residents: Residents, hook: Hook) -> Any:
    return residents._call("reset", "it", hook).perform()


@pytest.mark.slow
def test_a_hook_that_fails_is_named_with_its_node_and_answer(backend_name: str) -> None:
    wrong = plan(
        reset=(SqlHook(node="db", statements=("TRUNCATE nothing",)),),
        count=(CommandHook(node="db", command=("sh", "-c", "echo lost >&2; exit 3")),),
    )
    slow = SqlHook(node="db", statements=("SELECT pg_sleep(60)",), timeout_s=0.5)
    loop = CommandHook(node="db", command=("sleep", "60"), timeout_s=0.5)
    residents = Residents(choose(backend_name), {"it": wrong}, placement(), f"hooks-{os.getpid()}")
    residents.prepare()
    residents.start()
    try:
        with pytest.raises(HookFailed, match=r"reset of node 'db' \(SQL 'TRUNCATE.*does not exist"):
            residents.reset("it")
        with pytest.raises(HookFailed, match=r"count of node 'db' \(command 'sh.*lost"):
            residents.count("it")
        for hook in (slow, loop):
            began = time.monotonic()
            with pytest.raises(HookFailed, match=r"took longer than 0\.5 s"):
                carried_out(residents, hook)
            assert time.monotonic() - began < 20, "it would take a minute"
        # The statement was ended on the server, too, and the line can be used again.
        left = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)'"
        left += " AND state = 'active'"
        assert carried_out(residents, SqlHook(node="db", statements=(left,))) == 0
        residents._interrupted = lambda: "enough"
        for hook in (slow, loop):
            patient = hook.model_copy(update={"timeout_s": 60.0})
            with pytest.raises(RunInterrupted, match="enough"):
                carried_out(residents, patient)
    finally:
        residents.stop()
    assert leftovers.everything() == []


@pytest.mark.slow
def test_a_stack_that_cannot_be_seeded_is_stopped(backend_name: str) -> None:
    broken = plan(SqlHook(node="db", statements=("INSERT INTO nowhere VALUES (1)",)))
    residents = Residents(choose(backend_name), {"it": broken}, placement(), f"seed-{os.getpid()}")
    residents.prepare()
    with pytest.raises(HookFailed, match=r"seed of node 'db' .*nowhere"):
        residents.start()
    assert leftovers.everything() == []


class Spoken(BaseHTTPRequestHandler):
    """Answers as the test's list says, and keeps what it was asked."""

    answers: list[tuple[int, object]]
    asked: list[tuple[str, str, str]]

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()
        self.asked.append((self.command, self.path, body))
        status, content = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        text = content if isinstance(content, str) else json.dumps(content)
        if status == 0:
            time.sleep(float(text))
        self.send_response(status or 200)
        self.end_headers()
        if status != 204:
            self.wfile.write(text.encode())

    do_GET = do_POST = _answer  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def spoken() -> Iterator[ThreadingHTTPServer]:
    Spoken.answers, Spoken.asked = [], []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Spoken)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def on(
    server: ThreadingHTTPServer,
    interrupted: Callable[[], str] = lambda: "",
    ended: str = "",
    **hook: Any,
) -> HookCall:
    labels = SimpleNamespace(service="web-2")
    launch = SimpleNamespace(control_port=server.server_port, labels=labels)
    instance = SimpleNamespace(launch=launch, exit_reason=lambda: ended, log=lambda: "its log")
    made = HttpHook(node="web", **{"path": "/it", **hook})
    return HookCall("count", made, instance, lambda: None, interrupted)  # type: ignore[arg-type]


def test_an_http_hook_sends_its_method_and_finds_its_number(spoken) -> None:
    Spoken.answers = [(201, {"stored": {"rows": [0, 4]}})]
    assert on(spoken, method="GET", number="/stored/rows/1").number() == 4
    assert Spoken.asked == [("GET", "/it", "")]
    Spoken.answers = [(204, "")]
    assert on(spoken).perform() == ""


def test_another_status_than_success_fails_with_the_answer(spoken) -> None:
    Spoken.answers = [(404, "not made")]
    with pytest.raises(HookFailed) as caught:
        on(spoken).perform()
    assert str(caught.value) == "count of node 'web' (POST /it): answered 404: 'not made'"


@pytest.mark.parametrize(
    "content", ["no json", {"rows": "many"}, {"rows": 1.5}, {"rows": True}, {"row": 1}, [], ""]
)
def test_an_answer_without_the_number_fails_with_the_answer(spoken, content: object) -> None:
    Spoken.answers = [(200, content)]
    with pytest.raises(HookFailed, match="no whole number at '/rows' in its answer"):
        on(spoken, number="/rows").number()


def test_a_busy_service_is_asked_again_until_the_time_is_up(spoken) -> None:
    Spoken.answers = [(409, "busy"), (409, "busy"), (200, "done")]
    assert on(spoken, timeout_s=20).perform() == "done"
    assert len(Spoken.asked) == 3
    Spoken.answers = [(409, "still busy")]
    began = time.monotonic()
    with pytest.raises(HookFailed, match=r"answered 409: .*still busy"):
        on(spoken, timeout_s=0.4).perform()
    assert 0.4 <= time.monotonic() - began < 10
    with pytest.raises(RunInterrupted, match="during the count of node 'web': enough"):
        on(spoken, interrupted=lambda: "enough" if len(Spoken.asked) > 5 else "").perform()


def test_a_service_that_does_not_answer_is_given_up_or_left_when_asked_to_end(spoken) -> None:
    Spoken.answers = [(0, "4")]
    began = time.monotonic()
    with pytest.raises(HookFailed, match=r"took longer|timed out"):
        on(spoken, timeout_s=0.3).perform()
    with pytest.raises(RunInterrupted, match="enough"):
        on(spoken, interrupted=lambda: "enough" if len(Spoken.asked) > 1 else "").perform()
    assert time.monotonic() - began < 10


def test_a_dead_service_is_told_as_dead_with_its_log(spoken) -> None:
    Spoken.answers = [(500, "")]
    with pytest.raises(ServiceFailed, match=r"'web-2': was ended by SIGKILL[\s\S]*its log"):
        on(spoken, ended="was ended by SIGKILL").perform()
    spoken.server_close()
    with pytest.raises(HookFailed, match=r"POST /it.*(refused|reset)"):
        on(spoken).perform()


@given(st.integers(-(10**17), 10**17))
def test_whole_numbers_are_read_as_they_are(number: int) -> None:
    assert _whole(number) == _whole(f" {number}\n") == number


@given(st.text().filter(lambda text: not text.strip().lstrip("-").isascii() or not text.strip()))
def test_nothing_else_is_a_count(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        _whole(text)
