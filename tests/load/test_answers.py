"""A load's answers are told apart by what they hold, over every client, packed or not."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
from collections.abc import Iterator
from concurrent.futures import Future
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from perflab.analysis.doubts.answer_classes import OBJECT, Answers
from perflab.cli.load_status import Status, status_of
from perflab.load.clients.exchange import Exchange, Prepared
from perflab.load.clients.kept_replies import FILE, FIRST, MOST_KEPT, ONE_IN, ReplyKeeper, kept_in
from perflab.load.clients.outcome import MEASURE, WARMUP
from perflab.load.clients.targets import split
from perflab.load.once import send
from perflab.load.records.answers import answers_in
from perflab.load.summary_table import table
from perflab.load.workload import ClosedLoop, Request, Workload
from perflab.load.workload.workload import ClientName
from tests.load.clients.http2_peer import Peer, peer
from tests.load.processes import a_worker

RIGHT = json.dumps({"jsonrpc": "2.0", "id": 1, "result": [*range(30)]}).encode()
ERROR = json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"message": "Internal error"}}).encode()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json"
URL = "http://127.0.0.1:1"


class Server(ThreadingHTTPServer):
    """Answers rightly so many times, and with an error and status 200 afterwards."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, right: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.right = right
        # Of the right ones in time every such is right; headers may be the same in all answers.
        self.one_in, self.varies = 1, True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def next_answer(self, accepted: str) -> tuple[bytes, dict[str, str]]:
        """Return a body, and headers that differ from answer to answer."""
        self.right -= 1
        body = RIGHT if self.right >= 0 and self.right % self.one_in == 0 else ERROR
        headers = {"content-type": "application/json"}
        headers |= {"x-request": str(self.right)} if self.varies else {}
        if "gzip" in accepted:
            body, headers = gzip.compress(body), {**headers, "content-encoding": "gzip"}
        return body, {**headers, "content-length": str(len(body))}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        body, headers = self.server.next_answer(self.headers.get("Accept-Encoding", ""))
        lines = [f"{name.title()}: {value}" for name, value in headers.items()]
        head = "\r\n".join(["HTTP/1.1 200 OK", *lines, "", ""])
        self.wfile.write(head.encode() + body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def http2(server: Server) -> Iterator[str]:
    """Give the answers of the server over HTTP/2; yield the address."""

    class Http2Peer(Peer):
        def answer(self, stream: int) -> None:
            accepted = self.heads[stream].get("accept-encoding", "")
            body, headers = server.next_answer(accepted)
            self.h2.send_headers(stream, [(":status", "200"), *headers.items()])
            self.h2.send_data(stream, body, end_stream=True)
            self.flush()

    async def serve() -> None:
        async with peer("plain", kind=Http2Peer) as (url, _):
            address.set_result(url)
            await over.wait()

    address: Future[str] = Future()
    loop, over = asyncio.new_event_loop(), asyncio.Event()
    thread = Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    yield address.result(10)
    loop.call_soon_threadsafe(over.set)
    thread.join()
    loop.close()


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(10**9) as served:
        Thread(target=served.serve_forever, daemon=True).start()
        yield served
        served.shutdown()


def answers_to(load: Workload, url: str) -> list[Answers]:
    """Send a load; return its answers by class."""
    with a_worker() as generator:
        result = generator.run(load, url)
        found = answers_in(result)[""]
        result.discard()
    return found


@pytest.mark.parametrize("client", ["lean", "aiohttp", "httpx", "http2"])
@pytest.mark.parametrize("packed", [False, True])
def test_each_client_tells_errors_with_status_200_from_results(
    server: Server, http2: str, client: ClientName, packed: bool
) -> None:
    server.right = 40
    headers = {"Accept-Encoding": "gzip"} if packed else {}
    request, arrivals = Request(headers=headers), ClosedLoop(users=2, requests=100)
    load = Workload(request=request, arrivals=arrivals, client=client)
    found = answers_to(load, http2 if client == "http2" else server.url)
    assert {each.answer.form for each in found} == {OBJECT}
    numbers = {dict(each.answer.keys).get("error", ""): round(each.number) for each in found}
    assert numbers == {"": 40, "object": 60}
    assert any(each.example.startswith('{"jsonrpc": "2.0", "id": 1, "error"') for each in found)


@pytest.mark.promise
def test_an_error_of_the_same_bytes_in_every_answer_has_a_class(server: Server) -> None:
    # A breaker that opens: before the measurement every other answer is an error, and in it all.
    server.right, server.one_in, server.varies = 2_000, 2, False
    arrivals = ClosedLoop(users=1, requests=500, warmup_requests=2_001)
    found = answers_to(Workload(request=Request(), arrivals=arrivals), server.url)
    numbers = {dict(each.answer.keys).get("error", ""): round(each.number) for each in found}
    assert numbers == {"object": 500}


@pytest.mark.parametrize("over_http2", [False, True])
def test_a_load_tells_answers_that_one_user_before_it_never_got(
    server: Server, http2: str, over_http2: bool
) -> None:
    server.right = 40
    url = http2 if over_http2 else server.url
    shown = send(url, users=2, duration_s=0.5, http2=over_http2, objectives=("p50<9s",))
    (text,) = (each.text for each in shown.reasons if "unseen" in each.code)
    assert "of the answers have the keys error, id, jsonrpc" in text
    assert "none of the 20 answers to one user before the load was like that" in text
    assert "--expect-body" in text
    assert '"message": "Internal error"' in text
    assert table(shown).startswith("INVALID: these numbers may not be used\n  - ")
    assert (shown.valid, status_of(shown)) == (False, Status.INVALID)


def test_a_load_of_so_many_requests_sends_no_other_and_is_held_against_its_first(
    server: Server,
) -> None:
    server.right = 60
    shown = send(server.url, users=1, requests=100)
    assert server.right == 60 - 100
    (text,) = (each.text for each in shown.warnings if "unseen" in each.code)
    assert text.startswith("40% of the answers have the keys error, id, jsonrpc")
    assert "none of the first 20 answers was like that" in text


def test_a_load_whose_answers_are_each_held_against_a_text_is_not_judged_by_their_kinds(
    server: Server,
) -> None:
    server.right = 40
    shown = send(server.url, users=2, duration_s=0.3, expect_body="jsonrpc")
    assert not [each for each in shown.warnings if "unseen" in each.code]
    assert server.right < 0


def asking(folder: Path, words: str) -> str:
    """Write a script whose users ask with these words; return its name."""
    script = folder / "asking.py"
    script.write_text(
        "from perflab.load.users import User, action\n"
        "class Asking(User):\n"
        "    @action\n"
        "    async def ask(self):\n"
        f"        await self.get({words})\n"
    )
    return f"{script}:Asking"


def test_scripts_are_judged_by_the_name_of_the_request(server: Server, tmp_path: Path) -> None:
    script = asking(tmp_path, "'/', name='ask'")
    server.right = 60
    shown = send(server.url, users=1, duration_s=1.0, script=script)
    (text,) = (each.text for each in shown.warnings if "unseen" in each.code)
    assert "of the answers to ask have the keys error, id, jsonrpc" in text


@pytest.mark.promise
def test_an_error_that_one_check_met_and_most_of_the_load_is_told(server: Server) -> None:
    server.right = 19
    shown = send(server.url, users=2, duration_s=0.5)
    (text,) = (each.text for each in shown.warnings if "risen" in each.code)
    assert text.startswith("100% of the answers have the keys error, id, jsonrpc, 5.0% to one user")


@pytest.mark.promise
def test_the_usual_name_of_a_request_has_no_credential(server: Server, tmp_path: Path) -> None:
    script = asking(tmp_path, "'/?page=2&access_token=of-the-login'")
    shown = send(server.url, users=1, duration_s=0.3, script=script)
    assert "GET /?page=2&access_token=..." in shown.model_dump_json()
    assert "of-the-login" not in shown.model_dump_json()


def kept_of(keeper: ReplyKeeper, sizes: list[int], stage: int = MEASURE) -> list[int]:
    """Return the numbers of the answers of these lengths that are kept."""
    exchange = Exchange(Prepared(Request(), split(URL)[0]), 0, lambda _: None, stage=stage)
    exchange.status, numbers = 200, []
    for size in sizes:
        exchange.bytes = size
        # A clock that ticks in microseconds.
        exchange.done_ns += 1000 * random.randrange(30, 90)
        is_passed_over = keeper.is_passed_over(exchange)
        numbers.append(0 if is_passed_over else keeper.keep(exchange, HEAD, [b"x" * size]))
    return numbers


def test_few_answers_of_each_length_are_kept_and_of_all_one_in_61() -> None:
    keeper = ReplyKeeper()
    numbers = kept_of(keeper, [100, 1000] * 20_000)
    assert all(numbers[: 2 * FIRST])
    later = sum(number > 0 for number in numbers[2 * FIRST :])
    assert 0.8 < later / (40_000 / ONE_IN) < 1.25


def test_a_rare_length_is_kept_whenever_it_comes() -> None:
    keeper = ReplyKeeper()
    kept_of(keeper, [1000] * 5_000)
    assert all(kept_of(keeper, [30] * FIRST))


def test_what_was_kept_in_the_warm_up_takes_no_place_of_the_measurement() -> None:
    keeper = ReplyKeeper()
    kept_of(keeper, [1000] * 5_000, WARMUP)
    # The measurement begins, for the keeper, with the first answer that is drawn.
    numbers = kept_of(keeper, [1000] * 2_000)
    assert sum(number > 0 for number in numbers) > FIRST + 2_000 / ONE_IN / 2


def test_a_long_load_keeps_no_more_than_its_room(tmp_path: Path) -> None:
    keeper = ReplyKeeper()
    kept_of(keeper, [60_000] * 60_000)
    keeper.write(tmp_path)
    kept = kept_in(tmp_path)
    assert sum(len(each.body or b"") for each in kept) < 40 << 20
    assert max(each.number for each in kept) > len(kept)


@pytest.mark.promise
def test_no_cookie_of_an_answer_is_written(tmp_path: Path) -> None:
    keeper = ReplyKeeper()
    head = HEAD + b"\r\nSet-Cookie: session=hunter2\r\nContent-Encoding: br"
    exchange = Exchange(Prepared(Request(), split(URL)[0]), 0, lambda _: None)
    keeper.keep(exchange, head, [b"x"])
    keeper.write(tmp_path)
    assert b"hunter2" not in (tmp_path / FILE).read_bytes()
    (kept,) = kept_in(tmp_path)
    assert (kept.content_type, kept.encoding, kept.body) == ("application/json", "br", b"x")


def test_the_latest_answers_stay_when_room_is_made(tmp_path: Path) -> None:
    # The lean client gives their numbers to later answers of the same bytes.
    keeper, numbers = ReplyKeeper(), list[int]()
    while len(numbers) <= FIRST + MOST_KEPT:
        numbers += [number for number in kept_of(keeper, [1000]) if number]
    keeper.write(tmp_path)
    kept = {each.number for each in kept_in(tmp_path)}
    assert len(kept) < len(numbers)
    assert kept >= set(numbers[-10:])
