"""The chat service's page in a real browser: a client that nobody here wrote."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from browsing import Window
from chatting import EASY, IMPLEMENTATIONS, counts
from running import Service, Start

pytestmark = pytest.mark.browser
TEXT = 'Grüße <b>&"</b> <script>alert(1)</script> \\'
FRAMES = {"json": "text", "orjson": "binary", "msgspec": "binary"}
Open = Callable[[Service], Window]


@pytest.fixture
def opened(browser: Any) -> Iterator[Open]:
    """Open windows that are closed at the test's end."""
    windows: list[Window] = []

    def show(service: Service) -> Window:
        windows.append(Window(browser, service))
        return windows[-1]

    yield show
    for window in windows:
        window.close()


@pytest.fixture(scope="module", params=zip(FRAMES, IMPLEMENTATIONS, strict=True), ids=" ".join)
def variant(request: pytest.FixtureRequest, started: Start) -> Service:
    codec, implementation = request.param
    return started("chat", codec=codec, websocket=implementation, **EASY)


@pytest.fixture(scope="module")
def plain(started: Start) -> Service:
    """The service without compression."""
    return started("chat", deflate="off", **EASY)


def test_two_people_chat_in_every_json_codec_with_compression(
    variant: Service, opened: Open
) -> None:
    codec = str(variant.launch.settings["codec"])
    ann, ben = windows = opened(variant).join("user1"), opened(variant).join("user2")
    for window in windows:
        assert window.text("state").endswith("compressed")
        assert "not" not in window.text("state")
        assert f"codec {codec} (JSON in {FRAMES[codec]} frames)" in window.text("codec")
        window.choose("channel3")
    ann.say(TEXT)
    ben.wait(ben.lines)
    ben.say("x" * 2000)
    for window in windows:
        window.wait(lambda window=window: len(window.lines()) == 2)
        assert [line[1:] for line in window.lines()] == [["user1", TEXT], ["user2", "x" * 2000]]
        assert all(re.search(r"\d:\d\d", time) for time, _, _ in window.lines())
        assert window.text("problem") == ""
    ann.wait(lambda: "acknowledged after" in ann.text("acked"))
    assert counts(variant)["refused"] == {}


def test_a_ping_goes_out_every_second_and_its_round_trip_is_shown(
    plain: Service, opened: Open
) -> None:
    ann = opened(plain).join("user1")
    ann.wait(lambda: "round trip" in ann.text("pong"))
    first = ann.text("pong")
    ann.wait(lambda: ann.text("pong") not in ("", first))
    assert re.fullmatch(
        r"round trip \d+\.\d ms, users 1, messages/s \d+, frames waiting \d+", ann.text("pong")
    )
    assert "not compressed" in ann.text("state")


def test_who_comes_later_reads_the_history(plain: Service, opened: Open) -> None:
    ann = opened(plain).join("user1")
    ann.choose("channel5")
    for text in ("first", "second"):
        ann.say(text)
    ann.wait(lambda: len(ann.lines()) == 2)
    late = opened(plain).join("user7")
    late.choose("channel5")
    late.wait(late.lines)
    assert late.lines() == [["earlier", "user1", "first"], ["earlier", "user1", "second"]]


def test_a_message_in_another_channel_is_counted_beside_its_name(
    plain: Service, opened: Open
) -> None:
    ann, ben = opened(plain).join("user1"), opened(plain).join("user2")
    ann.choose("channel7")
    ben.choose("channel8")
    ann.say("over here")
    ben.wait(lambda: "channel7 (1 new)" in ben.text("channels"))
    assert ben.lines() == []


def test_who_left_a_channel_is_told_to_subscribe_and_keeps_the_text(
    plain: Service, opened: Open
) -> None:
    ann = opened(plain).join("user3")
    ann.choose("channel2")
    ann.box("channel2").click()
    ann.wait(ann.box("channel2").is_enabled)
    ann.say("let me")
    ann.wait(lambda: "Tick the channel to subscribe" in ann.text("problem"))
    assert "not_subscribed" in ann.text("problem")
    ann.load()
    ann.join("user3").choose("channel2")
    assert not ann.box("channel2").is_selected()
    ann.say("let me")
    ann.wait(lambda: ann.part("text").get_property("value") == "let me")
    ann.box("channel2").click()
    ann.wait(ann.box("channel2").is_enabled)
    ann.part("send").click()
    ann.wait(lambda: [line[1:] for line in ann.lines()] == [["user3", "let me"]])


def test_a_wrong_password_is_told_and_can_be_mended(plain: Service, opened: Open) -> None:
    ann = opened(plain)
    ann.log_in("user1", "correct hors")
    ann.wait(lambda: "check name and password (wrong_login: " in ann.text("problem"))
    assert not ann.part("room").is_displayed()
    ann.join("user1")
    assert ann.text("problem") == ""
    ann.part("leave").click()
    assert ann.part("entry").is_displayed()
    assert not ann.part("room").is_displayed()


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (signal.SIGKILL, 1006, "it broke off without a word"),
        (signal.SIGTERM, 1012, "the service stops or restarts"),
    ],
    ids=["killed", "stopped"],
)
def test_the_end_of_the_service_is_told_and_people_reconnect(
    started: Start, opened: Open, number: signal.Signals, code: int, words: str
) -> None:
    service = started("chat", **EASY)
    ann = opened(service).join("user1")
    ann.say("before")
    ann.wait(ann.lines)
    assert not ann.part("reconnect").is_displayed()
    os.kill(service.instance.pid, number)
    ann.wait(ann.part("reconnect").is_displayed)
    assert f"connection ended: {words} (code {code}, " in ann.text("state")
    assert not ann.part("send").is_enabled()
    service.wait_ended()
    service.again().wait_healthy()
    ann.part("reconnect").click()
    ann.wait(lambda: "connected as user1" in ann.text("state"))
    ann.wait(ann.lines)
    ann.say("after")
    ann.wait(lambda: [text for _, _, text in ann.lines()] == ["before", "after"])


def test_who_is_not_let_in_any_more_comes_back_to_the_login(started: Start, opened: Open) -> None:
    service = started("chat", token_ttl_s=0, **EASY)
    ann = opened(service)
    ann.log_in("user1")
    ann.wait(lambda: "log in again (expired_token: " in ann.text("problem"))
    assert ann.part("entry").is_displayed()


@pytest.mark.parametrize("codec", ["protobuf", "msgpack"])
def test_a_codec_that_is_not_json_is_said_to_be_none_for_the_page(
    started: Start, opened: Open, codec: str
) -> None:
    ann = opened(started("chat", codec=codec, **EASY))
    ann.wait(lambda: f"the service runs the codec {codec}" in ann.text("problem"))
    assert "start it with codec json, orjson or msgspec" in ann.text("problem")
    assert not ann.part("enter").is_enabled()


HARM = """
const [to, done] = arguments;
const post = (path, type) => fetch(to + path, {
  method: "POST", mode: "no-cors", body: '{"user": "user1", "password": "correct horse"}',
  headers: type ? { "Content-Type": type } : {},
});
const form = Object.assign(document.createElement("form"), {
  action: to + "/reset", method: "POST", target: "hidden", enctype: "text/plain",
});
const frame = Object.assign(document.createElement("iframe"), { name: "hidden" });
document.body.append(form, frame);
frame.onload = () => Promise.allSettled([
  post("/reset"), post("/reset", "text/plain"), post("/login"),
  fetch(to + "/reset", { method: "POST", headers: { "Content-Type": "application/json" } }),
]).then((all) => done(all.map((each) => each.status)));
form.submit();
"""


@pytest.fixture
def other_origin() -> Iterator[str]:
    """An empty page of another origin, which is the same site: this host, another port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), EmptyPage) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class EmptyPage(BaseHTTPRequestHandler):
    """A page with nothing in it."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><body>")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_page_of_another_origin_resets_nothing_and_logs_nobody_in(
    plain: Service, opened: Open, other_origin: str
) -> None:
    ann = opened(plain).join("user1")
    ann.choose("channel6")
    ann.say("still here")
    ann.wait(ann.lines)
    # Nobody is connected, so that a reset would be done.
    ann.part("leave").click()
    ann.wait(lambda: counts(plain)["active_users"] == 0)
    before = counts(plain)
    stranger = opened(plain).front()
    stranger.get(other_origin)
    ends = stranger.execute_async_script(HARM, f"http://127.0.0.1:{plain.port}")
    # Without CORS a page may send three of these, and not even ask for the fourth.
    assert ends == ["fulfilled", "fulfilled", "fulfilled", "rejected"]
    after = counts(plain)
    assert after["refused"]["foreign_page"] >= before["refused"].get("foreign_page", 0) + 3
    assert after["logins"] == before["logins"] > 0
    ann.load()
    ann.join("user1").choose("channel6")
    ann.wait(lambda: [text for _, _, text in ann.lines()] == ["still here"])


def test_the_browser_has_no_complaint_about_the_page(plain: Service, opened: Open) -> None:
    ann = opened(plain)
    ann.complaints()
    ann.load()
    ann.join("user1")
    ann.say("hello")
    ann.wait(ann.lines)
    assert ann.complaints() == []
