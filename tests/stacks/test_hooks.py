"""Real stacks of both backends are filled, emptied and counted; errors name the step."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from perflab.errors import HookFailed, RunInterrupted, ServiceFailed
from perflab.host.placing import placement
from perflab.paths import state_dir
from perflab.stacks import cleanup, resets, settings
from perflab.stacks.plan import Node, Seed, StackPlan
from perflab.stacks.process_backend import choose
from perflab.stacks.residents import Residents, stand
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
        line = residents.database("it")
        assert line is not None
        line.rows("CREATE TABLE models (id integer PRIMARY KEY)")
        line.rows("INSERT INTO models SELECT generate_series(1, 6)")
        assert residents.count("it") == 6
        residents.reset("it")
        assert residents.count("it") == 5
        began = time.monotonic()
        with pytest.raises(HookFailed, match=r"took longer than 0\.5 s"):
            seed(residents, slow)
        residents.plans = {"it": plan.model_copy(update={"reset": ("SELECT pg_sleep(60)",)})}
        with pytest.raises(HookFailed, match="statement timeout"):
            residents.reset("it")
        residents._interrupted = lambda: "enough"
        with pytest.raises(RunInterrupted, match="enough"):
            seed(residents, slow.model_copy(update={"timeout_s": 60.0}))
        assert time.monotonic() - began < 50, "each would take a minute"


@pytest.mark.promise
def test_a_stack_that_cannot_be_made_ready_leaves_nothing() -> None:
    broken = Seed(node="echo", command=("sh", "-c", "exit 3"))
    plan = StackPlan(nodes=ECHO, seed=(broken,))
    with pytest.raises(HookFailed):
        stand(plan, choose("process"), placement(), print)
    assert [*(state_dir() / "stacks").glob("up-*")] == []


def seed(residents: Residents, command: Seed) -> None:
    residents.plans = {"it": StackPlan(nodes=DATABASE, seed=(command,))}
    residents.seed()


def forget(*answers: tuple[int, str], interrupted: str = "", ended: str = "") -> list[str]:
    """Reset a service with these answers, the last one again and again; return the paths."""
    paths: list[str] = []

    def answer(_method: str, path: str, _body: bytes) -> tuple[int, str]:
        paths.append(path)
        return answers[min(len(paths), len(answers)) - 1]

    with answering(answer) as port:
        labels = SimpleNamespace(service="web-2")
        spec = SimpleNamespace(reset="/reset")
        launch = SimpleNamespace(control_port=port, labels=labels, spec=spec)
        words = {"exit_reason": lambda: ended, "log": lambda: "its log"}
        instance: Any = SimpleNamespace(launch=launch, **words)
        resets.forget("web", instance, lambda: interrupted)
    return paths


def test_a_busy_service_is_asked_again_until_the_time_is_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert forget((409, "busy"), (409, "busy"), (204, "")) == ["/reset"] * 3
    with pytest.raises(RunInterrupted, match=r"during the reset of node 'web'.*: enough"):
        forget((409, "still busy"), interrupted="enough")
    monkeypatch.setattr(resets, "RESET_WITHIN_S", 0.4)
    with pytest.raises(HookFailed, match=r"answered 409: 'still busy'"):
        forget((409, "still busy"))


def test_a_dead_service_is_reported_as_dead_with_its_log() -> None:
    with pytest.raises(ServiceFailed, match=r"'web-2': was ended by SIGKILL[\s\S]*its log"):
        forget((500, ""), ended="was ended by SIGKILL")
