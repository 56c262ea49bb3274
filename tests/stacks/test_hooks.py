"""Real stacks of both backends are filled, emptied and counted; errors name the step."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from perflab.errors import HookFailed, RunInterrupted, ServiceFailed
from perflab.stacks import cleanup, hooks, settings
from perflab.stacks.plan import Node, Seed, StackPlan
from tests.stacks.asking import residents_of, started
from tests.support.answering import answering

COUNT = "SELECT count(*) FROM models"
ECHO = (Node(name="echo", service="echo"),)
DATABASE = (Node(name="db", service="postgres", placement="database"),)


@pytest.mark.slow
def test_a_service_of_two_treatments_is_seeded_once_and_stopped_where_that_fails() -> None:
    # A second seeding would fail, since the folder exists.
    once = Seed(node="echo", command=("sh", "-c", "mkdir {data}/made-once"))
    plan = StackPlan(nodes=ECHO, seed=(once,))
    with started("process", {"it": plan, "other": plan}):
        pass
    broken = Seed(node="echo", command=("sh", "-c", "echo lost >&2; exit 3"))
    residents = residents_of("process", {"it": StackPlan(nodes=ECHO, seed=(broken,))})
    with pytest.raises(HookFailed, match=r"seed of node 'echo': .*lost"):
        residents.start()
    assert cleanup.everything() == []


@pytest.mark.slow
def test_a_database_is_emptied_and_counted_and_a_failing_step_is_named_in_time(
    backend_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "STATEMENT_TIMEOUT_MS", 500)
    reset = ("DELETE FROM models WHERE id > 5", "CHECKPOINT")
    plan = StackPlan(nodes=DATABASE, database="db", reset=reset, count=COUNT)
    slow = Seed(node="db", command=("sleep", "60"), timeout_s=0.5)
    with started(backend_name, {"it": plan}) as residents:
        with pytest.raises(HookFailed, match=r"reset of the database \(DELETE.*does not exist"):
            residents.reset("it")
        with pytest.raises(HookFailed, match=r"count of the database .*does not exist"):
            residents.count("it")
        server, line = residents.instance("it", "db"), residents.database("it")
        assert line is not None
        line.rows("CREATE TABLE models (id integer PRIMARY KEY)")
        line.rows("INSERT INTO models SELECT generate_series(1, 6)")
        assert residents.count("it") == 6
        residents.reset("it")
        assert residents.count("it") == 5
        began = time.monotonic()
        with pytest.raises(HookFailed, match=r"took longer than 0\.5 s"):
            hooks.fill(slow, server, lambda: "")
        with pytest.raises(HookFailed, match="statement timeout"):
            hooks.empty(["SELECT pg_sleep(60)"], line, server)
        with pytest.raises(RunInterrupted, match="enough"):
            hooks.fill(slow.model_copy(update={"timeout_s": 60.0}), server, lambda: "enough")
        assert time.monotonic() - began < 50, "each would take a minute"


@dataclass
class Answers:
    """A service's answers in order, the last one again and again, and the paths of its requests."""

    answers: list[tuple[int, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    def answer(self, _method: str, path: str, _body: bytes) -> tuple[int, str]:
        self.paths.append(path)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


Forget = Callable[..., None]


@pytest.fixture
def service() -> Answers:
    return Answers()


@pytest.fixture
def forget(service: Answers) -> Iterator[Forget]:
    """Return a function that resets a service with the answers of ``service``."""
    with answering(service.answer) as port:

        def reset(interrupted: Callable[[], str] = lambda: "", ended: str = "") -> None:
            labels = SimpleNamespace(service="web-2")
            spec = SimpleNamespace(reset=SimpleNamespace(http="/reset"))
            launch = SimpleNamespace(control_port=port, labels=labels, spec=spec)
            instance: Any = SimpleNamespace(
                launch=launch, exit_reason=lambda: ended, log=lambda: "its log"
            )
            hooks.forget("web", instance, interrupted)

        yield reset


def test_a_busy_service_is_asked_again_until_the_time_is_up(
    service: Answers, forget: Forget, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.answers = [(409, "busy"), (409, "busy"), (204, "")]
    forget()
    assert service.paths == ["/reset"] * 3
    service.answers = [(409, "still busy")]
    with pytest.raises(RunInterrupted, match=r"during the reset of node 'web'.*: enough"):
        forget(interrupted=lambda: "enough" if len(service.paths) > 5 else "")
    monkeypatch.setattr(hooks, "RESET_WITHIN_S", 0.4)
    with pytest.raises(HookFailed, match=r"answered 409: 'still busy'"):
        forget()


def test_a_dead_service_is_reported_as_dead_with_its_log(service: Answers, forget: Forget) -> None:
    service.answers = [(500, "")]
    with pytest.raises(ServiceFailed, match=r"'web-2': was ended by SIGKILL[\s\S]*its log"):
        forget(ended="was ended by SIGKILL")
