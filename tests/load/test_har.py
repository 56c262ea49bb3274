"""HAR files: what is taken of them, what is refused, and that broken ones say what is wrong."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflab.errors import ParameterError, TargetRefused
from perflab.load import once
from perflab.load.command import workload
from perflab.load.har import MOST_REQUESTS, Choice, read
from perflab.load.options import Options
from tests.examples import examples


def entry(url: str, method: str = "GET", **words: Any) -> dict[str, Any]:
    request = {"method": method, "url": url, "headers": words.pop("headers", [])}
    if "body" in words:
        request["postData"] = words.pop("body")
    return {"request": request, "response": {"status": 200}, "time": 100, **words}


def har(folder: Path, *entries: Any) -> str:
    file = folder / "recorded.har"
    file.write_text(json.dumps({"log": {"version": "1.2", "entries": list(entries)}}))
    return str(file)


def header(name: str, value: str) -> dict[str, str]:
    return {"name": name, "value": value}


@contextmanager
def serving() -> Iterator[tuple[str, list[bytes]]]:
    heard: list[bytes] = []
    ready, loop = threading.Event(), asyncio.new_event_loop()
    port: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = 0
                for line in head.lower().split(b"\r\n"):
                    if line.startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                heard.append(head + await reader.readexactly(length))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def work() -> None:
        asyncio.set_event_loop(loop)
        server = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0))
        port.append(server.sockets[0].getsockname()[1])
        ready.set()
        loop.run_forever()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert ready.wait(20)
    yield f"http://127.0.0.1:{port[0]}", heard
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


def test_requests_are_sent_in_their_order_with_bodies_and_without_secrets(tmp_path: Path) -> None:
    secret = [
        header("Cookie", "s=1"),
        header("Authorization", "Bearer x"),
        header("X-Api-Key", "k"),
    ]
    file = har(
        tmp_path,
        entry("https://shop.example/one?q=a b#part", headers=[*secret, header("X-Kept", "yes")]),
        entry("https://shop.example/two", "POST", body={"mimeType": "text/plain", "text": "öl"}),
        entry("https://shop.example/img.png"),
    )
    with serving() as (origin, heard):
        shown = once.send(
            origin, har=file, har_filter=r"/(one|two)", users=1, duration=0.3, workers=1
        )
    assert shown["errors"] == 0
    assert [row["name"] for row in shown["by_name"]] == ["GET /one", "POST /two"]
    assert heard[0].startswith(b"GET /one?q=a%20b HTTP/1.1\r\n")
    assert b"X-Kept: yes" in heard[0]
    for word in (b"s=1", b"Bearer", b"Api", b"shop.example"):
        assert word not in heard[0]
    assert heard[1].endswith("öl".encode())
    assert [one.split()[1] for one in heard[:4]] == [b"/one?q=a%20b", b"/two"] * 2


@pytest.mark.slow
def test_secrets_are_sent_where_that_is_asked_for_and_stay_out_of_the_record(
    tmp_path: Path,
) -> None:
    file = har(tmp_path, entry("http://h/", headers=[header("cookie", "a=geheim")]))
    with serving() as (origin, heard):
        out = str(tmp_path / "out")
        once.send(
            origin, har=file, har_keep_secrets=True, users=1, duration=0.1, workers=1, out=out
        )
    assert b"cookie: a=geheim" in heard[0]
    assert "geheim" not in (tmp_path / "out" / "load.json").read_text()


def test_every_foreign_host_is_named_and_refused_before_anything_is_sent(tmp_path: Path) -> None:
    with serving() as (origin, heard):
        file = har(
            tmp_path, entry(origin + "/"), entry("http://a.example/"), entry("https://b.example/x")
        )
        with pytest.raises(TargetRefused, match=r"a\.example, b\.example"):
            once.send("", har=file, users=1, duration=0.1, workers=1)
        with pytest.raises(TargetRefused, match=r"--allow-target b\.example"):
            workload(Options(har=file, users=1, allow_targets=["a.example"]))
        assert heard == []


@pytest.mark.slow
def test_hosts_that_are_allowed_are_sent_to_each_by_its_own_connection(tmp_path: Path) -> None:
    with serving() as (one, heard_one), serving() as (two, heard_two):
        file = har(tmp_path, entry(one + "/a"), entry(two + "/b"))
        shown = once.send("", har=file, users=2, duration=0.3, workers=1)
    assert shown["errors"] == 0
    assert {head.split()[1] for head in heard_one} == {b"/a"}
    assert {head.split()[1] for head in heard_two} == {b"/b"}
    assert shown["connections_opened"] <= 4


def test_pauses_are_the_time_between_an_answer_and_the_next_request(tmp_path: Path) -> None:
    def at(second: str, took_ms: float) -> dict[str, Any]:
        words = {"startedDateTime": f"2024-05-01T10:00:{second}Z", "time": took_ms}
        return entry("http://127.0.0.1:9/", **words)

    file = har(tmp_path, at("00.000", 500), at("02.000", 3000), at("03.000", 1))
    kept = read(Choice(file, pauses=True)).requests
    assert [each.pause_s for each in kept] == [0, 1.5, 0]
    assert [each.pause_s for each in read(Choice(file)).requests] == [0, 0, 0]


def test_what_no_server_saw_is_left_out_and_counted(tmp_path: Path) -> None:
    file = har(
        tmp_path, entry("http://h/"), entry("data:text/plain,x"), entry("wss://h/"),
        entry("http://h/cached", _fromCache="disk"),
    )  # fmt: skip
    recording = read(Choice(file))
    assert ([each.request.path for each in recording.requests], recording.left_out) == (["/"], 3)


def test_a_file_that_was_changed_since_the_plan_is_refused(tmp_path: Path) -> None:
    file = har(tmp_path, entry("http://h/"))
    with pytest.raises(ParameterError, match="was changed since"):
        read(Choice(file, sha256="0" * 64))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "no list log.entries"),
        ('{"log": {"entries": {}}}', "no list log.entries"),
        ('{"log": {"entries": []}}', "none of its 0 entries"),
        ('{"log": {"entries": [3]}}', "entry 1: it has no request"),
        ('{"log": {"entries": [{"request": {"url": "http://u:p@h/"}}]}}', "entry 1: .*password"),
        ('{"log": {"entries": [{"request": {"url": "http://h/", "method": "A B"}}]}}', "entry 1"),
    ],
)
def test_a_broken_har_says_what_is_wrong(tmp_path: Path, content: str, told: str) -> None:
    file = tmp_path / "broken.har"
    file.write_text(content)
    with pytest.raises(ParameterError, match=told):
        read(Choice(str(file)))


def test_a_har_is_bounded(tmp_path: Path) -> None:
    file = har(tmp_path, *[entry("http://h/")] * (MOST_REQUESTS + 1))
    with pytest.raises(ParameterError, match="take fewer with --har-filter"):
        read(Choice(file))


def test_a_filter_that_is_none_and_options_that_do_not_go_with_a_har_are_refused(
    tmp_path: Path,
) -> None:
    file = har(tmp_path, entry("http://127.0.0.1:9/"))
    for words, told in (
        ({"har": file, "har_filter": "("}, "--har-filter"),
        ({"har": file, "headers": ["a: b"]}, "--header does not go with --har"),
        ({"har": file, "rate": 5}, "--rate does not go with --har"),
        ({"url": "http://127.0.0.1:9/", "har_pauses": True}, "--har-pauses needs --har"),
        ({}, "give an address"),
    ):
        with pytest.raises(ParameterError, match=told):
            workload(Options(users=1, **words))  # type: ignore[arg-type]


NAMES = ("log", "entries", "request", "url", "method", "headers", "name", "value", "postData")
MORE = ("text", "params", "mimeType", "response", "status", "startedDateTime", "time", "GET")
WORDS = st.sampled_from((*NAMES, *MORE, "http://h/\u00e9"))
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | WORDS
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=20,
)
ENTRIES = st.fixed_dictionaries(
    {"request": st.fixed_dictionaries({"url": st.text() | st.just("http://h/") | ANYTHING},
                                      optional={"method": ANYTHING, "headers": ANYTHING,
                                                "postData": ANYTHING})},
    optional={"response": ANYTHING, "startedDateTime": ANYTHING, "time": ANYTHING},
)  # fmt: skip


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(ENTRIES | ANYTHING, max_size=4), st.booleans(), st.booleans())
def test_whatever_a_har_holds_it_is_read_or_refused_with_words(
    tmp_path_factory: pytest.TempPathFactory, entries: list[Any], pauses: bool, secrets: bool
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.har"
    file.write_text(json.dumps({"log": {"entries": entries}}))
    with contextlib.suppress(ParameterError):
        recording = read(Choice(str(file), pauses=pauses, keep_secrets=secrets))
        assert recording.requests
        assert all(each.request.path.startswith("/") for each in recording.requests)
