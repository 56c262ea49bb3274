"""A load that another generator makes: started, waited for, and told apart from what it is not."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from perflab.errors import RunInterrupted, ServiceFailed, StackError
from perflab.host.placing import placement
from perflab.instruments import Observation, OtherLoad, Scene
from perflab.load.workload import ClosedLoop, Request, Workload
from perflab.stacks.plan import Node, StackPlan
from tests.support.answering import answering

RUNNING = (200, {"status": "running"})
DONE = {
    "status": "completed",
    "results": {
        "good": 3,
        "late": 1,
        "total_s": 5.25,
        "p99_ms": None,
        "hung": 0,
        "errors": {"reset": 2},
        "each": [
            {"start_ms": 0.5, "first_byte_ms": 1.0, "end_ms": 9.0, "bytes": 10, "outcome": "done"},
            {"start_ms": 0.6, "first_byte_ms": None, "end_ms": None, "bytes": 0, "outcome": "hung"},
        ],
    },
}
COLUMNS = {"good_told": "good", "total_told_s": "total_s"}
LOAD = Workload(request=Request(), arrivals=ClosedLoop(users=1, requests=1))


@dataclass
class OtherSide:
    """A service with a generator of its own: what it answers to a start, and to look after look."""

    start: tuple[int, Any] = (202, {"results": "/loads/7"})
    looks: list[tuple[int, Any] | None] = field(default_factory=lambda: [(200, DONE)])
    holds_up_s: float = 0.0
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    port: int = 0

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, str] | None:
        self.asked.append((method, path, json.loads(body) if body else None))
        told: tuple[int, Any] | None = self.start
        if method == "GET":
            told = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if told is None:
            time.sleep(self.holds_up_s)
            return None
        return told[0], json.dumps(told[1])

    @property
    def looked(self) -> int:
        return sum(method == "GET" for method, *_ in self.asked)


@pytest.fixture
def side() -> Iterator[OtherSide]:
    other = OtherSide()
    with answering(other.answer) as other.port:
        yield other


def load(**changed: Any) -> OtherLoad:
    settings = {
        "node": "it", "path": "/load", "body": {"clients": 4}, "columns": COLUMNS,
        "longest_s": 20.0, "poll_s": 0.02, **changed,
    }  # fmt: skip
    return OtherLoad.model_validate(settings)


def look(
    side: OtherSide,
    wanted: OtherLoad,
    check: Callable[[], None] = lambda: None,
    interrupted: Callable[[], str] = lambda: "",
) -> Any:
    launch = SimpleNamespace(port=side.port)
    residents = SimpleNamespace(
        instance=lambda *_: SimpleNamespace(launch=launch), check_alive=lambda _: check()
    )
    scene = Scene(residents, "it", LOAD, placement(), interrupted=interrupted)  # type: ignore[arg-type]
    return wanted.look(scene)


def seen(side: OtherSide, wanted: OtherLoad, **words: Any) -> Observation:
    """Return what a look sees of a trial whose own load takes no time."""
    made = look(side, wanted, **words)
    made.begin()
    made.end()
    made.after()
    return made.observe(None)  # type: ignore[no-any-return]


def test_its_load_is_started_waited_for_and_its_numbers_become_columns(side: OtherSide) -> None:
    side.looks = [RUNNING, RUNNING, (200, DONE)]
    found_ = seen(side, load())
    assert found_.columns == {"good_told": 3.0, "total_told_s": 5.25}
    assert (list(found_.reasons), found_.tables) == ([], {})
    assert side.asked[0] == ("POST", "/load", {"clients": 4})
    assert [each[:2] for each in side.asked[1:]] == [("GET", "/loads/7")] * 3


def test_looks_without_an_answer_are_no_fault(
    side: OtherSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perflab.instruments.other_load.PATIENCE_S", 0.2)
    side.looks, side.holds_up_s = [None, None, (200, DONE)], 0.5
    assert seen(side, load()).columns["good_told"] == 3.0
    assert side.looked == 3


def test_a_load_that_is_not_over_in_time_fails_the_trial(side: OtherSide) -> None:
    # It ends at last: who waited for that would be seen.
    side.looks = [*[RUNNING] * 150, (200, DONE)]
    with pytest.raises(
        StackError, match=r"POST /load of node 'it'.*not over within longest_s = 0.3"
    ):
        seen(side, load(longest_s=0.3))


def test_a_service_that_has_ended_is_told_at_once(side: OtherSide) -> None:
    def gone() -> None:
        raise ServiceFailed("it", "died", "last words")

    side.looks = [None]
    with pytest.raises(ServiceFailed, match="last words"):
        seen(side, load(), check=gone)


def test_who_wants_to_end_does_not_wait_for_it(side: OtherSide) -> None:
    side.looks = [RUNNING]
    with pytest.raises(RunInterrupted, match=r"while another load was under way.*enough"):
        seen(side, load(poll_s=60), interrupted=lambda: "enough" if side.looked else "")


@pytest.mark.parametrize(
    ("start", "problem"),
    [
        ((409, {"error": "one is under way"}), "answered 409.*one is under way"),
        ((202, {"results": 7}), "no text 'results'"),
        ((202, {"results": "http://elsewhere/"}), "which is no path"),
    ],
    ids=["refused", "a number", "another host"],
)
def test_a_load_that_does_not_start_fails_the_trial(
    side: OtherSide, start: tuple[int, Any], problem: str
) -> None:
    side.start = start
    with pytest.raises(StackError, match=problem):
        look(side, load()).begin()


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({"status": "failed", "why": "no files left"}, "no files left"),
        ({"status": "completed", "results": {"good": 3}}, "nothing at 'total_s'"),
        ({"status": "completed", "results": {"good": True, "total_s": 1}}, "no number at 'good'"),
    ],
    ids=["failed", "missing", "true"],
)
def test_a_load_that_says_nothing_that_can_be_used_refuses_the_trial(
    side: OtherSide, answer: Any, problem: str
) -> None:
    side.looks = [(200, answer)]
    found_ = seen(side, load())
    (reason,) = found_.reasons
    assert (reason.code, reason.side) == ("other_load.results", "server")
    assert problem in reason.text
    assert [*found_.columns] == [*COLUMNS]
    assert all(map(math.isnan, found_.columns.values()))


def test_what_requests_that_were_cut_off_could_move_is_a_bound(side: OtherSide) -> None:
    columns = {**COLUMNS, "reset_told": "errors.reset", "mean_told_ms": "total_s"}
    bounds = {"total_told_s": ("hung",), "mean_told_ms": ("hung", "late")}
    found_ = seen(side, load(columns={**columns, "p99_told_ms": "p99_ms"}, at_least_if=bounds))
    assert (found_.columns["total_told_s"], found_.columns["reset_told"]) == (5.25, 2)
    assert math.isnan(found_.columns["mean_told_ms"])
    assert found_.columns["mean_told_at_least_ms"] == 5.25
    assert math.isnan(found_.columns["p99_told_ms"]), "null: it is not told"


def test_its_own_record_of_its_requests_becomes_a_table(side: OtherSide) -> None:
    table = seen(side, load(requests="each")).tables["other_load"]
    assert [*table] == [*OtherLoad.tables["other_load"]]
    assert table["outcome"].tolist() == ["done", "hung"]
    assert table["end_ms"].isna().tolist() == [False, True]


def test_a_node_that_is_not_there_is_refused_before_anything_starts() -> None:
    stack = StackPlan(nodes=(Node(name="it", service="echo"),))
    assert not [*load().obstacles(stack, LOAD)]
    (problem,) = load(node="that").obstacles(stack, LOAD)
    assert "no node 'that'" in problem
