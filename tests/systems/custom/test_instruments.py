"""The instruments of variants refuse what they could not measure, before anything starts."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from perflab.errors import LoadError, WrongAnswer
from perflab.load.workload.arrivals import ClosedLoop
from perflab.load.workload.request import Request
from perflab.load.workload.workload import Workload
from perflab.stacks.plan import StackPlan
from perflab.systems.custom.instruments import RightAnswer
from tests.support.answering import answering


def test_an_address_where_nobody_listens_is_refused_before_the_run_begins() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        place = f"127.0.0.1:{listening.getsockname()[1]}"
        instrument = RightAnswer(variant="new", target=f"http://{place}")
        instrument.check_usable(StackPlan(nodes=()))
    with pytest.raises(LoadError, match=f"variant 'new': nobody answers at {place} "):
        instrument.check_usable(StackPlan(nodes=()))
    RightAnswer(variant="new").check_usable(StackPlan(nodes=()))


def refused(request: Request, status: int, port: int) -> str:
    """Return what is said of a variant that has a store, and answers with another status."""
    spec = SimpleNamespace(needs=("db",))
    running = SimpleNamespace(
        launch=SimpleNamespace(port=port, spec=spec), log=lambda: "started\nno such user"
    )
    arrivals = ClosedLoop(users=1, requests=1, max_duration_s=5)
    scene: Any = SimpleNamespace(
        workload=Workload(request=request, arrivals=arrivals), instance=lambda _: running
    )
    with pytest.raises(WrongAnswer, match=f"has status {status} instead of 200") as caught:
        RightAnswer(variant="new").sensor(scene).before()
    return str(caught.value)


@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_are_told_with_the_header_that_was_sent_and_the_log(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN_OF_OURS", "never-shown-7")
    with answering(lambda *_: (status, "never-shown-7 is wrong")) as port:
        sent = Request(headers={"X-Auth": "{env:TOKEN_OF_OURS}", "Accept": "*/*"})
        told = refused(sent, status, port)
        assert "refused the credentials: sent was X-Auth: {env:TOKEN_OF_OURS}" in told
        assert "its store holds only what setup made" in told
        assert told.endswith("its last log lines:\n  | started\n  | no such user")
        assert "expect_status" not in told
        assert "Accept" not in told
        assert "never-shown-7" not in told
        assert "no header with credentials was sent" in refused(Request(), status, port)


def test_another_wrong_answer_is_told_with_the_log_and_what_else_may_be_expected() -> None:
    with answering(lambda *_: (500, "")) as port:
        told = refused(Request(), 500, port)
    assert "mend the variant, or change expect_status or expect_body\n" in told
    assert "  | no such user" in told


@pytest.mark.parametrize("status", [404, 405])
def test_where_nothing_is_at_a_path_the_way_out_is_another_path(status: int) -> None:
    with answering(lambda *_: (status, '{"access_token": "of-the-service"}')) as port:
        told = refused(Request(), status, port)
    assert "name the path that users ask for (--path" in told
    assert "of-the-service" not in told
