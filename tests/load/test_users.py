"""Scripted users and their messages: recorded like any load; none can end the others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflab import credentials
from perflab.errors import ParameterError
from perflab.load.checks.selfcheck import check
from perflab.load.options import LoadOptions
from perflab.load.records.message_record import (
    DIRECTIONS,
    MOST_KINDS,
    RECEIVED,
    SENT,
    MessageRecorder,
    messages,
)
from perflab.load.records.result import LoadResult
from perflab.load.report import summary
from perflab.load.summary import LoadSummary
from perflab.load.summary_table import table
from perflab.load.users import NotServed, Reply, User, action, actions
from perflab.load.workers.scripted import find
from perflab.load.workload import Request, Scripted, Workload
from tests.load.planted import BEGIN_NS, S, load_result, scripted
from tests.load.processes import a_worker, served

SCRIPT = """
import asyncio
import itertools
import os
from perflab.load.records.message_record import RECEIVED
from perflab.load.users import User, action

NUMBERS = itertools.count()

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

class Listener(User):
    async def on_start(self):
        path = self.parameters["paths"][self.number % len(self.parameters["paths"])]
        await self.websocket(path, self.hear)
    def hear(self, data, at_ns):
        self.note(RECEIVED, len(data), at_ns, key=int(data), kind="tick")
    @action
    async def listen(self):
        await self.pause(60)

class Leaver(User):
    wait_s = 0.5
    async def on_stop(self):
        await self.get("/logout", name="leave")
    @action
    async def look(self):
        await self.get("/")

class Talker(User):
    wait_s = 0.2
    @action
    async def talk(self):
        print("of python")
        os.write(1, b"of a library\\n")
        try:
            input()
        except EOFError:
            await self.get("/", name="without input")

class Counted(User):
    @action
    async def ask(self):
        await self.get("/", name=f"{next(NUMBERS)} of\\nall")

class Odd(User):
    @action
    async def ask(self):
        await self.get("/")
    def told(self, name, right):
        return "soon" if (self.number, self.parameters["wrong"]) == (3, name) else right
    def first_due_ns(self):
        return self.told("first_due_ns", 0)
    def wait(self):
        return self.told("wait", 0.05)
    def leaves_ns(self):
        return self.told("leaves_ns", 0)

class Listed(User):
    wait_s = [0.01, 0.02]
    @action
    async def ask(self):
        await self.get("/")

class Stuck(User):
    @action
    async def sit(self):
        await asyncio.Event().wait()

class Restless(User):
    @action
    async def wander(self):
        while True:
            await self.pause(0.05)
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("script") / "shop.py"
    path.write_text(SCRIPT)
    return str(path)


@pytest.fixture
def server() -> Iterator[int]:
    with served("0.002") as port:
        yield port


@pytest.fixture(scope="module")
def chat() -> Iterator[int]:
    with served("deflate", program="websocket_server.py") as port:
        yield port


def load(
    port: int, script: str, timeout_s: float = 30.0, **arrivals: object
) -> tuple[LoadResult, Workload]:
    words = {"kind": "scripted", "script": script, "users": 20, "duration_s": 1.0, **arrivals}
    users = Scripted.model_validate(words)
    work = Workload(request=Request(), arrivals=users, timeout_s=timeout_s)
    with a_worker(real_time=True) as generator:
        return generator.run(work, f"http://127.0.0.1:{port}"), work


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


def test_one_users_failure_is_recorded_and_ends_nobody(server: int, script: str) -> None:
    result, work = load(server, f"{script}:Broken", users=5)
    table = result.requests
    failed = table[table["error"] == "script"]
    assert set(failed["user"]) == {3}
    assert table[table["error"] == ""]["user"].nunique() == 5
    assert "number three" in result.failures[0]
    assert any("script" in reason for reason in check(result, work).reasons)
    result.discard()


def test_a_script_is_read_once_and_names_may_have_several_lines(server: int, script: str) -> None:
    result, _ = load(server, f"{script}:Counted", users=3, actions=1)
    assert set(result.requests["template"]) == {f"{number} of\nall" for number in range(3)}
    result.discard()


@pytest.mark.parametrize("wrong", ["wait", "first_due_ns", "leaves_ns"])
def test_a_wait_that_cannot_be_told_ends_its_user_and_nobody_else(
    server: int, script: str, wrong: str
) -> None:
    result, _ = load(server, f"{script}:Odd", users=5, parameters={"wrong": wrong})
    table = result.requests
    assert set(table[table["error"] == "script"]["user"]) == {3}
    assert (table[table["user"] != 3]["user"].value_counts() > 3).sum() == 4
    assert [kind for kind, _ in result.first_errors] == ["script"]
    result.discard()


def test_the_bounds_of_a_wait_may_stand_in_a_list(server: int, script: str) -> None:
    result, _ = load(server, f"{script}:Listed", users=2, duration_s=0.5)
    assert set(result.requests["error"]) == {""}
    result.discard()


def test_a_script_that_prints_or_asks_for_input_disturbs_no_load(
    server: int, script: str, capfd: pytest.CaptureFixture[str]
) -> None:
    result, _ = load(server, f"{script}:Talker", users=2)
    assert set(result.requests["template"]) == {"without input"}
    assert result.failures == []
    result.discard()
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "of python" in printed.err
    assert "of a library" in printed.err


@pytest.mark.promise
def test_a_credential_in_the_traceback_of_a_script_is_masked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "_known", {})
    credentials.keep("hunter2-Tt83", "TOKEN_OF_A_SCRIPT")
    result = load_result(tmp_path, np.array([1.0]))
    (tmp_path / "0" / "failures.txt").write_text("ValueError: no user has hunter2-Tt83")
    assert result.failures == ["ValueError: no user has {env:TOKEN_OF_A_SCRIPT}"]


@pytest.mark.alone
def test_a_request_at_the_end_of_a_user_is_planned_when_the_user_stops(
    server: int, script: str
) -> None:
    result, _ = load(server, f"{script}:Leaver", users=2, duration_s=0.8)
    table = result.requests[result.requests["template"] == "leave"]
    assert len(table) == 2
    assert (table["done_ns"] - table["planned_ns"]).max() < S // 4
    result.discard()


def summed(port: int, script: str, duration_s: float, *paths: str) -> LoadSummary:
    words = {"duration_s": duration_s, "parameters": {"paths": paths}}
    result, work = load(port, f"{script}:Listener", timeout_s=5, **words)
    shown = summary(result, work, check(result, work))
    result.discard()
    return shown


@pytest.mark.alone
def test_messages_to_users_who_only_listen_are_results(chat: int, script: str) -> None:
    shown = summed(chat, script, 2.0, "/push")
    assert (shown.requests, shown.errors) == (0, 0)
    # The server sends 20 a second to each of 20 users; a busy machine may hold some back.
    assert 200 < shown.messages_received <= 20 * 20 * 2.2
    assert 0 < shown.messages_per_s <= 20 * 20 * 1.1
    assert shown.message_delay.ms["p50"] > 0
    assert "messages received" in table(shown)


def test_connections_that_fell_silent_are_counted_with_the_time_since_when(
    chat: int, script: str
) -> None:
    shown = summed(chat, script, 8.0, "/push", "/mute")
    told = {item.code: item.text for item in shown.warnings}
    assert told["load.quiet"].startswith("10 of 20 WebSockets got no message for over 5 s")
    # Half a second after they joined, which they do late on a busy machine.
    assert 0.1 <= float(told["load.quiet"].split()[-1]) <= 2.6
    assert "did not answer the end of 10 of 20" in told["load.unanswered"]
    assert shown.errors_by_cause[0].error == "silent"
    assert not shown.response_time.at_least_ms, "no request was cut off"
    assert (shown.errors, shown.valid) == (10, False)


@pytest.mark.slow
def test_a_server_that_answers_no_ping_is_given_up_while_the_load_lasts(
    chat: int, script: str
) -> None:
    result, work = load(
        chat, f"{script}:Listener", timeout_s=1, duration_s=12, parameters={"paths": ["/mute"]}
    )
    failed = result.requests
    assert set(failed["error"]) == {"silent"}
    assert check(result, work).client_cpu_share < 1, "it is one of the whole load's time"
    # Silent after half a second, asked after five more, and given up after one.
    assert ((failed["done_ns"] - result.measured_from_ns) / 1e9).between(6, 10).all()
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
        ("perflab.load.users:Reply", "no class Reply that is a perflab User"),
        ("perflab.load.users:User", "no method marked"),
    ],
)
def test_a_script_that_cannot_be_used_is_refused(name: str, text: str) -> None:
    with pytest.raises(ParameterError, match=text):
        find(name)


def test_a_script_that_ends_the_process_when_it_is_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text("import sys\nsys.exit()\n")
    with pytest.raises(ParameterError, match=r"ends\.py: SystemExit"):
        find(f"{tmp_path}/ends.py:Shopper")


def test_what_a_script_prints_when_it_is_read_goes_to_standard_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    greeting = "print('of python')\nos.write(1, b'of a library\\n')\n"
    (tmp_path / "loud.py").write_text(SCRIPT + greeting)
    find(f"{tmp_path}/loud.py:Shopper")
    print("the answer")
    printed = capfd.readouterr()
    assert printed.out == "the answer\n"
    assert printed.err == "of python\nof a library\n"


@pytest.mark.promise
@pytest.mark.parametrize(
    "given",
    [{"method": "PUT"}, {"body": "x"}, {"expect_status": "201"}, {"expect_body": "y"},
     {"expect_bytes": 3}, {"redirects": 2}, {"stream": "sse"}],
)  # fmt: skip
def test_what_a_script_says_of_each_request_is_refused_beside_it(
    script: str, given: dict[str, object]
) -> None:
    options = {"url": "http://127.0.0.1:1/", "script": f"{script}:Shopper", "users": 2}
    flag = "--" + next(iter(given)).replace("_", "-")
    with pytest.raises(ParameterError, match=rf"{flag} does not go with --script, where each"):
        LoadOptions.of({**options, **given}).workload()
    assert LoadOptions.of(options).workload().arrivals.kind == "scripted"


def test_a_ramp_in_which_not_all_users_would_join_is_refused_with_a_script_as_well(
    script: str,
) -> None:
    options = {"url": "http://127.0.0.1:1/", "script": f"{script}:Shopper", "users": 10}
    with pytest.raises(ParameterError, match="--ramp 100: it is longer than the load"):
        LoadOptions.of({**options, "ramp": 100}).workload()
    assert LoadOptions.of({**options, "ramp": 12, "warmup": 2}).workload().arrivals.join_s == 1.2


def test_actions_that_users_did_not_begin_are_counted_as_unsent(server: int, script: str) -> None:
    # The last four of ten users join after the end; an action takes 0.05 to 0.15 s.
    result, work = load(
        server, f"{script}:Shopper", users=10, join_s=0.2, duration_s=1.1, actions=1000
    )
    acted = result.requests["template"].isin(["browse", "basket"]).sum()
    assert result.unsent == 10 * 1000 - acted
    (reason,) = [reason for reason in check(result, work).reasons if "never sent" in reason]
    assert reason.side == "unknown"
    result.discard()


def test_a_refusal_by_the_server_is_no_fault_of_the_script(chat: int, script: str) -> None:
    words = {"users": 3, "actions": 5, "parameters": {"paths": ["/refuse"]}}
    result, work = load(chat, f"{script}:Listener", **words)
    assert set(result.requests["error"]) == {"handshake"}
    reasons = check(result, work).reasons
    assert {reason.side for reason in reasons if "requests" in reason} == {"server"}
    assert any("15 planned requests were never sent" in reason for reason in reasons)
    result.discard()


def test_reading_a_body_above_the_limit_raises_an_error_with_a_way_out() -> None:
    with pytest.raises(NotServed, match="keep_body=False"):
        Reply(200, "body_too_large").json()


@pytest.mark.promise
@pytest.mark.parametrize(
    "reply",
    [Reply(502, "status", b"", b"<html>"), Reply(0, "timeout"), Reply(200, "body", b"\xff")],
)
def test_json_that_a_failed_request_did_not_bring_is_no_fault_of_the_script(reply: Reply) -> None:
    with pytest.raises(NotServed) as caught:
        reply.json()
    assert caught.value.kind == reply.error


def test_what_a_request_brought_is_read_whether_it_failed_or_not() -> None:
    assert Reply(404, "status", b"", b'{"error": 1}').json() == {"error": 1}
    for body, told in ((b"", "keep_body=False"), (b"<html>", "Expecting value")):
        with pytest.raises(ValueError, match=told):
            Reply(200, "", b"", body).json()


@pytest.mark.parametrize("kind", ["Stuck", "Restless"])
def test_a_script_that_waits_for_ever_is_ended_and_counted(
    server: int, script: str, kind: str
) -> None:
    began = time.monotonic()
    result, _ = load(server, f"{script}:{kind}", timeout_s=0.5, users=3, duration_s=0.5)
    assert time.monotonic() - began < 0.5 + 0.5 + 5 + 20  # the last are the worker's start
    assert list(result.requests["error"]) == ["aborted"] * 3
    result.discard()


INT64, INT32 = st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**31 - 1)
NOTES = st.tuples(INT64, INT32, st.sampled_from([SENT, RECEIVED]), INT32, INT64, st.text())


@settings(max_examples=40, deadline=None)
@given(st.lists(NOTES, max_size=40))
def test_noted_messages_are_read_back(notes: list[tuple[int, int, int, int, int, str]]) -> None:
    with TemporaryDirectory() as place:
        recorder = MessageRecorder(Path(place))
        for note in notes:
            recorder.add(*note)
        recorder.close()
        table = messages(Path(place), 3)
    names = ["at_ns", "user", "direction", "bytes", "key", "kind"]
    assert [tuple(row) for row in table[names].to_numpy(object)] == [
        (at_ns, user, DIRECTIONS[direction], size, key, kind)
        for at_ns, user, direction, size, key, kind in notes
    ]
    assert set(table["worker"]) <= {3}


def test_workers_with_kinds_in_different_orders_are_joined(tmp_path: Path) -> None:
    for worker, kinds in enumerate((["offer", "bid"], ["bid", "offer", "sold"])):
        recorder = MessageRecorder(tmp_path / str(worker))
        for place, kind in enumerate(kinds):
            recorder.add(10 * worker + place, worker, SENT, 1, kind=kind)
        recorder.close()
    planted = load_result(tmp_path / "planted", np.zeros(0))
    joined = replace(planted, folder=tmp_path, workers=2).messages
    assert joined["kind"].tolist() == ["offer", "bid", "bid", "offer", "sold"]


def test_more_kinds_than_a_row_can_tell_apart_are_refused(tmp_path: Path) -> None:
    recorder = MessageRecorder(tmp_path)
    for number in range(MOST_KINDS):
        recorder.add(0, 0, SENT, 1, kind=f"kind {number}")
    with pytest.raises(ValueError, match="'one more' is one kind of messages too many"):
        recorder.add(0, 0, SENT, 1, kind="one more")
    recorder.close()
    assert messages(tmp_path, 0)["kind"].tolist() == [f"kind {n}" for n in range(MOST_KINDS)]


@pytest.mark.parametrize(("received_ms", "late"), [(500.0, False), (5.0, True)])
def test_a_late_sender_is_judged_by_the_times_of_its_own_kinds(
    tmp_path: Path, received_ms: float, late: bool
) -> None:
    load = load_result(tmp_path, np.arange(200) / 100, delays=(np.arange(400) / 200, np.zeros(400)))
    recorder = MessageRecorder(tmp_path / "0")
    for number in range(4000):
        planned_ns = BEGIN_NS + number * S // 2000
        recorder.add(planned_ns + 1_500_000, 1, SENT, 9, planned_ns, "bid")
        at_ns = planned_ns + round(received_ms * 1e6)
        recorder.add(at_ns, 2, RECEIVED, 9, planned_ns, "price")
    recorder.close()
    judgement = check(load, scripted())
    # The lag of streams is how late their messages were sent: these outnumber the requests.
    assert judgement.generator_lag_p50_ms == pytest.approx(1.5)
    assert any("client was late" in reason for reason in judgement.reasons) == late


def test_every_cookie_of_an_answer_is_there() -> None:
    head = (
        b"HTTP/1.1 302 Found\r\nSet-Cookie: csrftoken=a=b; Path=/; Secure\r\n"
        b"Location: /\r\nset-cookie: sessionid=xyz; HttpOnly\r\n"
    )
    answer = Reply(302, "", head)
    assert answer.cookies() == {"csrftoken": "a=b", "sessionid": "xyz"}
    assert Reply(200, "", b"HTTP/1.1 200 OK\r\n").cookies() == {}


def test_cookies_are_kept_until_an_answer_ends_them() -> None:
    user = User(0, 0, {})
    user._keep_cookies(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Path=/\r\nset-cookie: b=x=y\r\n\r\n")
    assert user._sent({"X": "1"}) == {"X": "1", "Cookie": "a=1; b=x=y"}
    assert user._sent({"cookie": "own"}) == {"cookie": "own"}
    past, later = "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT"
    for ended in ("Max-Age=0", f"Expires={past}"):
        user._keep_cookies(f"HTTP/1.1 200 OK\r\nSet-Cookie: a=2; {ended}\r\n\r\n".encode())
        assert user._sent({}) == {"Cookie": "b=x=y"}
        lasting = f"Max-Age=9; Expires={past}" if "Age" in ended else f"Expires={later}"
        user._keep_cookies(f"HTTP/1.1 200 OK\r\nSet-Cookie: a=3; {lasting}\r\n\r\n".encode())
        assert user._sent({}) == {"Cookie": "b=x=y; a=3"}
