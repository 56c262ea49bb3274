"""A load of several requests sends each as often as its weight says, and the same to everybody."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread

import pytest
from pydantic import ValidationError

from perflab.load.report import by_name
from perflab.load.workload import Request, Workload
from perflab.load.workload.arrivals import Arrivals, ClosedLoop, OpenLoop, Stage
from perflab.load.workload.mix import Weighted, filled, has_placeholders, problem_with
from tests.load.processes import a_worker

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


class Shop(ThreadingHTTPServer):
    """Answers everything, and keeps what it was asked."""

    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str, str]] = []
        self.lock = Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version, wbufsize = "HTTP/1.1", -1
    server: Shop

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length).decode()
        with self.server.lock:
            self.server.asked.append((self.command, self.path, body))
        status = 404 if self.path.startswith("/none") else 201 if self.command == "POST" else 200
        self.send_response(status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def shop() -> Iterator[Shop]:
    with Shop() as served:
        Thread(target=served.serve_forever).start()
        yield served
        served.shutdown()


CLOSED = ClosedLoop(users=2, requests=400, max_duration_s=30)
LIST = Weighted(name="list", weight=9, request=Request(path="/items?page={random:1-100}"))
CREATE = Weighted(
    name="create",
    request=Request(
        method="POST", path="/orders", expect_status=201,
        body='{"id": "{uuid}", "user": {user}, "kept": {braces}}',
    ),
)  # fmt: skip


def load(shop: Shop, *mix: Weighted, arrivals: Arrivals = CLOSED, seed: int = 1) -> object:
    workload = Workload(request=mix[0].request, mix=mix, seed=seed, arrivals=arrivals)
    with a_worker() as generator:
        result = generator.run(workload, shop.url)
        table, rows = by_name(result), result.requests
        result.discard()
    assert len(rows) == len(shop.asked)
    return table


def test_requests_come_by_their_weights_with_values_of_their_own(shop: Shop) -> None:
    table = load(shop, LIST, CREATE)
    counts = Counter(method for method, _, _ in shop.asked)
    assert 20 <= counts["POST"] <= 60, "one of ten, of 400"
    assert {row.name: (row.requests, row.errors) for row in table} == {
        "list": (counts["GET"], 0),
        "create": (counts["POST"], 0),
    }
    pages = {path for method, path, _ in shop.asked if method == "GET"}
    assert pages <= {f"/items?page={number}" for number in range(1, 101)}
    assert len(pages) > 50
    bodies = [body for method, _, body in shop.asked if method == "POST"]
    assert all(body.endswith('"kept": {braces}}') for body in bodies), "other braces stay"
    orders = [json.loads(body.replace("{braces}", "0")) for body in bodies]
    assert len({order["id"] for order in orders}) == len(orders)
    assert all(UUID.fullmatch(order["id"]) for order in orders)
    assert {order["user"] for order in orders} == {0, 1}


@pytest.mark.promise
@pytest.mark.parametrize(
    "arrivals",
    [
        ClosedLoop(users=1, requests=200, max_duration_s=30),
        OpenLoop(stages=(Stage(rate=400, duration_s=0.5),)),
    ],
)
def test_all_variants_get_the_same_sequence(shop: Shop, arrivals: Arrivals) -> None:
    load(shop, LIST, CREATE, arrivals=arrivals)
    first, shop.asked = shop.asked, []
    load(shop, LIST, CREATE, arrivals=arrivals)
    again, shop.asked = shop.asked, []
    load(shop, LIST, CREATE, arrivals=arrivals, seed=2)
    if isinstance(arrivals, OpenLoop):  # several connections: they arrive in another order
        first, again, shop.asked = map(sorted, (first, again, shop.asked))
    named = [[(method, path) for method, path, _ in asked] for asked in (first, again)]
    assert named[0] == named[1]
    texts = ["".join(body for *_, body in asked) for asked in (first, again)]
    if isinstance(arrivals, ClosedLoop):
        assert UUID.sub("", texts[0]) == UUID.sub("", texts[1])
    assert not {*UUID.findall(texts[0])} & {*UUID.findall(texts[1])}, "they may be keys"
    assert named[0] != [(method, path) for method, path, _ in shop.asked]


@pytest.mark.promise
def test_each_user_asks_with_its_own_number_however_many_connect_at_once(shop: Shop) -> None:
    """Most of them wait for their turn to open a connection, while others have chosen."""
    cart = Weighted(name="cart", request=Request(path="/cart/{user}"))
    load(shop, cart, arrivals=ClosedLoop(users=40, requests=40, max_duration_s=30))
    asked = sorted(path for _, path, _ in shop.asked)
    assert asked == sorted(f"/cart/{user}" for user in range(40))


def test_failures_are_those_of_their_name(shop: Shop) -> None:
    missing = Weighted(name="missing", request=Request(path="/none"))
    table = load(shop, LIST, missing)
    errors = {row.name: row.errors for row in table}
    assert errors["list"] == 0
    assert errors["missing"] == sum(path == "/none" for _, path, _ in shop.asked) > 0


def test_a_line_of_a_file_is_one_of_its_lines(tmp_path: Path) -> None:
    words = tmp_path / "words"
    words.write_text("red\n\nblue\n")
    request = Request(path=f"/find?q={{line:{words}}}")
    numbers = random.Random(1)
    paths = {filled(request, numbers, 0).path for _ in range(50)}
    assert paths == {"/find?q=red", "/find?q=blue"}
    assert "no such file" in problem_with(Request(path="/?q={line:nowhere}")).lower()
    assert "smaller one first" in problem_with(Request(path="/?q={random:9-1}"))
    cities = tmp_path / "cities"
    cities.write_text("Rome\n\nNew York\n")
    assert "line 3 holds a blank" in problem_with(Request(path=f"/?q={{line:{cities}}}"))
    assert problem_with(Request(body=f"{{line:{cities}}}")) == ""


@pytest.mark.parametrize("text", ["{}", "{user_id}", "{random}", "{ uuid }", "{random:1}", "{{x}}"])
def test_other_braces_are_no_placeholders(text: str) -> None:
    assert not has_placeholders(Request(body=text))


def test_two_requests_of_one_name_are_refused() -> None:
    with pytest.raises(ValidationError, match="two requests have one name"):
        Workload(request=LIST.request, mix=(LIST, LIST), arrivals=CLOSED)
