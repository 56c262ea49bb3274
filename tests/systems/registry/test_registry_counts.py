"""The instrument that asks a registry for its counts: silence is a row without numbers, not 0."""

from __future__ import annotations

import json
import math
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from perflab.systems.registry.registry_counts import TABLE, _RegistryCounts

TOLD = {"open": 3, "waiting_for_thread": 2, "store_discarded": 5}


class Counting(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps(TOLD).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    with HTTPServer(("127.0.0.1", 0), Counting) as found:
        thread = threading.Thread(target=found.serve_forever, daemon=True)
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def test_what_is_answered_is_kept_with_its_place_and_its_instants(server: HTTPServer) -> None:
    look = _RegistryCounts(server.server_port)
    look.after()
    (row,) = look.left()[TABLE].to_dict("records")
    assert (row["in_flight"], row["waiting_for_thread"], row["store_discarded"]) == (3, 2, 5)
    assert math.isnan(row["most_in_flight"])
    assert 0 < row["t_ns"] <= row["answered_ns"]


def test_who_does_not_answer_leaves_a_row_without_numbers() -> None:
    with socket.socket() as deaf:
        # Bound, so that nobody else gets the port, and nobody listens.
        deaf.bind(("127.0.0.1", 0))
        look = _RegistryCounts(deaf.getsockname()[1])
        look.after()
    (row,) = look.left()[TABLE].to_dict("records")
    assert row["answered_ns"] == 0
    assert math.isnan(row["in_flight"])
    assert math.isnan(row["store_discarded"])
