"""What bounds the proxy: how long an answer may take, and how many descriptors it has."""

from __future__ import annotations

import contextlib
import http.client
import json
import resource
from itertools import count
from pathlib import Path

import pytest
from asking_models import APIS, MODES, OLLAMA, OPENAI, Told, ask, counts, question, until
from running import Service, Start

pytestmark = pytest.mark.slow
LIMIT_S = 0.3


@pytest.fixture(scope="module")
def model(started: Start) -> Service:
    return started("llm_upstream", tokens=6, token_rate=0, first_token_ms=0)


@pytest.mark.parametrize("mode", MODES)
def test_an_answer_without_an_end_is_ended_in_the_stream_and_the_model_is_read_no_more(
    started: Start, model: Service, mode: str
) -> None:
    proxy = started("llm_proxy", {"upstream": model.port}, mode=mode, stream_limit_s=LIMIT_S)
    for path in APIS:
        assert len(ask(proxy.port, path, question()).words) == 6, "a short one is not touched"
        told = ask(proxy.port, path, question(), X_Fault="endless")
        assert told.status == 200
        *_, last = told.body.replace(b"\r\n", b"\n").strip().split(b"\n")
        error = json.loads(last.removeprefix(b"data: "))["error"]
        words = error if path == OLLAMA else error["message"]
        assert f"an answer may take {LIMIT_S:g} s" in words
        until(model, lambda now: now["open"] == 0)
    now = counts(proxy)
    assert now["refused"] == {"stream_too_long": 2}
    assert (now["completed"], now["failed"], now["open"], now["streams_open"]) == (2, 2, 0, 0)
    assert now["upstream_stopped"] == 2


def test_a_proxy_without_descriptors_says_so_and_goes_on_when_it_has_some(
    started: Start, model: Service
) -> None:
    proxy = started("llm_proxy", {"upstream": model.port}, mode="pass")
    pid = proxy.instance.pid
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=30)
    with contextlib.closing(connection):
        connection.request("GET", "/settings")
        connection.getresponse().read()
        taken = {int(each.name) for each in Path(f"/proc/{pid}/fd").iterdir()}
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        none_left = next(number for number in count() if number not in taken)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (none_left, limits[1]))
        try:
            told = asked(connection)
        finally:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        assert (told.status, told.json["error"]["code"]) == (503, "out_of_files")
        assert len(asked(connection).words) == 6
    assert counts(proxy)["refused"] == {"out_of_files": 1}


def asked(connection: http.client.HTTPConnection) -> Told:
    """Ask on a connection that is open: it needs no descriptor of its own."""
    connection.request("POST", OPENAI, json.dumps(question()), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    given = {name.lower(): value for name, value in answer.getheaders()}
    return Told(answer.status, given, answer.read())
