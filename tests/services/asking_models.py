"""Asking the stand-in for a model, or the proxy before it, and reading answers as they come."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATH = "/v1/chat/completions"
MODEL = "stand-in"
MODES = ("rebuild", "pass", "raw")
TOOL = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "unit": {"enum": ["km", "mi"]}},
        },
    },
}


def question(stream: bool = True, text: str = "why is it so?", **more: Any) -> dict[str, Any]:
    return {
        "model": MODEL,
        "messages": [{"role": "user", "content": text}],
        "stream": stream,
        **more,
    }


@dataclass(frozen=True)
class Told:
    """An answer that was read to its end."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[str]:
        """The contents of server-sent events, whatever ends their lines."""
        lines = self.body.decode().replace("\r\n", "\n").split("\n")
        return [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]

    @property
    def chunks(self) -> list[dict[str, Any]]:
        """The chunks, without the last event."""
        return [json.loads(event) for event in self.events if event != "[DONE]"]

    @property
    def parts(self) -> list[dict[str, Any]]:
        """What each chunk adds to the answer."""
        return [choice["delta"] for chunk in self.chunks for choice in chunk.get("choices", ())]

    @property
    def words(self) -> list[str]:
        """The text of each chunk that has one."""
        return [part["content"] for part in self.parts if part.get("content")]

    @property
    def error(self) -> Any:
        """What the last chunk says of an error."""
        return self.chunks[-1].get("error")


def ask(port: int, body: Any, path: str = PATH) -> Told:
    """Send a request and read its answer to the end."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.closing(connection):
        return ask_over(connection, body, path)


def ask_over(connection: http.client.HTTPConnection, body: Any, path: str = PATH) -> Told:
    """Ask over a connection, which stays open."""
    text = body if isinstance(body, str) else json.dumps(body)
    connection.request("POST", path, text, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    given = {name.lower(): value for name, value in answer.getheaders()}
    return Told(answer.status, given, answer.read())


@contextlib.contextmanager
def asking(port: int, text: str = "why?") -> Iterator[socket.socket]:
    """Ask for a stream and read nothing; at the block's end the reader is gone, without a word."""
    body = json.dumps(question(text=text))
    head = f"POST {PATH} HTTP/1.1\r\nHost: it\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.socket() as client:
        client.settimeout(30)
        client.connect(("127.0.0.1", port))
        client.sendall((head + body).encode())
        yield client
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


WHOLE = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "whole"}}]}


class BrokenModel(BaseHTTPRequestHandler):
    """A model that does what the question says: two chunks, then a fault."""

    protocol_version = "HTTP/1.1"
    server: BrokenServer

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fault, self.close_connection = asked["messages"][-1]["content"], True
        self.server.begun += 1
        with contextlib.suppress(OSError):
            if fault == "busy":
                self._give_whole(503, json.dumps({"error": {"message": "busy"}}))
            elif fault == "silent":
                self._wait()
            elif not asked["stream"]:
                self._give_whole(200, json.dumps(WHOLE), more=fault == "dies")
            else:
                self._stream(fault)
        self.server.ended += 1

    def _give_whole(self, status: int, text: str, more: bool = False) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text) + more))
        self.end_headers()
        self.wfile.write(text.encode())

    def _stream(self, fault: str) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for _ in range(2):
            self._token("word")
        while fault == "endless":
            self._token("word" * 100)
        {
            "stalls": self._wait,
            "error": lambda: self._event('{"error": {"message": "on purpose"}}'),
            "malformed": lambda: self._event('{"choices": [{"delta": {"content": "half a chu'),
            "huge": lambda: self._token("x" * 1_100_000),
        }.get(fault, lambda: None)()
        if fault != "dies":
            self.wfile.write(b"0\r\n\r\n")

    def _token(self, text: str) -> None:
        self._event(json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}))

    def _event(self, text: str) -> None:
        data = f"data: {text}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _wait(self) -> None:
        """Wait until the reader has gone."""
        self.connection.recv(1)


class BrokenServer(ThreadingHTTPServer):
    """Counts what begins and ends, also by its reader."""

    begun = ended = 0
    daemon_threads = True
    request_queue_size = 128

    @property
    def port(self) -> int:
        return int(self.server_address[1])


@contextlib.contextmanager
def broken_model() -> Iterator[BrokenServer]:
    with BrokenServer(("127.0.0.1", 0), BrokenModel) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
