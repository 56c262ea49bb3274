"""The load of another generator: its start, its end, its numbers, and its failures."""

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
from perflab.instruments import Observation, OtherLoad
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
    """A service with its own generator: its answer to a start, and to each read of its results."""

    start: tuple[int, Any] = (202, {"results": "/loads/7"})
    looks: list[tuple[int, Any] | None] = field(default_factory=lambda: [(200, DONE)])
    holds_up_s: float = 0.0
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    port: int = 0

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, str] | None:
        self.requests.append((method, path, json.loads(body) if body else None))
        reply: tuple[int, Any] | None = self.start
        if method == "GET":
            reply = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if reply is None:
            time.sleep(self.holds_up_s)
            return None
        return reply[0], json.dumps(reply[1])

    @property
    def looked(self) -> int:
        return sum(method == "GET" for method, *_ in self.requests)


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
    instrument: OtherLoad,
    check: Callable[[], None] = lambda: None,
    interrupted: Callable[[], str] = lambda: "",
) -> Any:
    launch = SimpleNamespace(port=side.port)
    residents = SimpleNamespace(
        instance=lambda *_: SimpleNamespace(launch=launch), check_alive=lambda _: check()
    )
    scene: Any = SimpleNamespace(interrupted=interrupted, treatment="it", residents=residents)
    scene.instance = residents.instance
    return instrument.sensor(scene)


def observed(side: OtherSide, instrument: OtherLoad, **words: Any) -> Observation:
    """Return the observation of a trial whose own load takes no time."""
    one_look = look(side, instrument, **words)
    one_look.begin()
    one_look.end()
    one_look.after()
    return one_look.observe(None)  # type: ignore[no-any-return]


def test_the_other_load_is_started_and_awaited_and_its_numbers_become_columns(
    side: OtherSide,
) -> None:
    side.looks = [RUNNING, RUNNING, (200, DONE)]
    observation = observed(side, load())
    assert observation.columns == {"good_told": 3.0, "total_told_s": 5.25}
    assert (list(observation.reasons), observation.tables) == ([], {})
    assert side.requests[0] == ("POST", "/load", {"clients": 4})
    assert [request[:2] for request in side.requests[1:]] == [("GET", "/loads/7")] * 3


def test_a_read_without_an_answer_is_no_fault(
    side: OtherSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perflab.instruments.other_load.PATIENCE_S", 0.2)
    side.looks, side.holds_up_s = [None, None, (200, DONE)], 0.5
    assert observed(side, load()).columns["good_told"] == 3.0
    assert side.looked == 3


def test_a_load_that_is_not_over_in_time_fails_the_trial(side: OtherSide) -> None:
    # It would end at last; the look must not wait for that.
    side.looks = [*[RUNNING] * 150, (200, DONE)]
    with pytest.raises(
        StackError, match=r"POST /load of node 'it'.*not over within longest_s = 0.3"
    ):
        observed(side, load(longest_s=0.3))


def test_a_service_that_has_ended_is_reported_at_once(side: OtherSide) -> None:
    def gone() -> None:
        raise ServiceFailed("it", "died", "last words")

    side.looks = [None]
    with pytest.raises(ServiceFailed, match="last words"):
        observed(side, load(), check=gone)


def test_an_interruption_does_not_wait_for_the_other_load(side: OtherSide) -> None:
    side.looks = [RUNNING]
    with pytest.raises(RunInterrupted, match=r"while another load was under way.*enough"):
        observed(side, load(poll_s=60), interrupted=lambda: "enough" if side.looked else "")


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
        ({"status": "completed", "results": {"good": 3}}, "'total_s'"),
        ({"status": "completed", "results": {"good": [], "total_s": 1}}, "must be a string or a"),
    ],
    ids=["failed", "missing", "a list"],
)
def test_a_load_without_usable_numbers_makes_the_trial_invalid(
    side: OtherSide, answer: Any, problem: str
) -> None:
    side.looks = [(200, answer)]
    observation = observed(side, load())
    (reason,) = observation.reasons
    assert (reason.code, reason.side) == ("other_load.results", "server")
    assert problem in reason.text
    assert [*observation.columns] == [*COLUMNS]
    assert all(map(math.isnan, observation.columns.values()))


def test_a_number_that_cut_off_requests_could_move_is_a_bound(side: OtherSide) -> None:
    columns = {**COLUMNS, "reset_told": "errors.reset", "mean_told_ms": "total_s"}
    bounds = {"total_told_s": ("hung",), "mean_told_ms": ("hung", "late")}
    observation = observed(
        side, load(columns={**columns, "p99_told_ms": "p99_ms"}, at_least_if=bounds)
    )
    assert (observation.columns["total_told_s"], observation.columns["reset_told"]) == (5.25, 2)
    assert math.isnan(observation.columns["mean_told_ms"])
    assert observation.columns["mean_told_at_least_ms"] == 5.25
    assert math.isnan(observation.columns["p99_told_ms"]), "null: it is not told"


def test_the_other_generators_requests_become_a_table(side: OtherSide) -> None:
    table = observed(side, load(requests="each")).tables["other_load"]
    assert [*table] == [*OtherLoad.tables["other_load"]]
    assert table["outcome"].tolist() == ["done", "hung"]
    assert table["end_ms"].isna().tolist() == [False, True]


def test_a_missing_node_is_refused_before_anything_starts() -> None:
    stack = StackPlan(nodes=(Node(name="it", service="echo"),))
    assert not [*load().obstacles(stack, LOAD)]
    (problem,) = load(node="that").obstacles(stack, LOAD)
    assert "no node 'that'" in problem
