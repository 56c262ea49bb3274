"""Asking the stand-in for a model, or the proxy before it, and reading answers as they come."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from running import SECRET, Service, call, wait_until

OPENAI, OLLAMA = "/v1/chat/completions", "/api/chat"
MODEL = "stand-in"
APIS = (OPENAI, OLLAMA)
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
        """The chunks of either format, without OpenAI's last event."""
        if self.headers["content-type"].startswith("text/event-stream"):
            return [json.loads(event) for event in self.events if event != "[DONE]"]
        return [json.loads(line) for line in self.body.splitlines()]

    @property
    def words(self) -> list[str]:
        """The text of each chunk that has one."""
        found = []
        for chunk in self.chunks:
            for part in (*(each["delta"] for each in chunk.get("choices", ())),
                         chunk.get("message", {})):  # fmt: skip
                found += [part["content"]] if part.get("content") else []
        return found

    @property
    def error(self) -> Any:
        """What the last chunk says of an error."""
        return self.chunks[-1].get("error")


def ask(
    port: int, path: str, body: Any, key: str = "", method: str = "POST", **headers: str
) -> Told:
    """Send a request; underscores of header names become hyphens."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    if key:
        named["Authorization"] = f"Bearer {key}"
    text = body if isinstance(body, str) else json.dumps(body)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.closing(connection):
        connection.request(method, path, text, {"Content-Type": "application/json", **named})
        answer = connection.getresponse()
        given = {name.lower(): value for name, value in answer.getheaders()}
        return Told(answer.status, given, answer.read())


def ask_model(model: Service, path: str, body: Any, **headers: str) -> Told:
    return ask(model.port, path, body, SECRET, **headers)


@contextlib.contextmanager
def asking(
    port: int, path: str = OPENAI, receive_bytes: int = 0, **headers: str
) -> Iterator[socket.socket]:
    """Ask for a stream and read nothing; at the block's end the reader is gone, without a word."""
    body = json.dumps(question())
    named = "".join(f"{name.replace('_', '-')}: {text}\r\n" for name, text in headers.items())
    head = f"POST {path} HTTP/1.1\r\nHost: it\r\nContent-Length: {len(body)}\r\n{named}\r\n"
    with socket.socket() as client:
        if receive_bytes:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        client.settimeout(30)
        client.connect(("127.0.0.1", port))
        client.sendall((head + body).encode())
        yield client
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def counts(service: Service) -> dict[str, Any]:
    return dict(call(service.port, "GET", "/counts").body)


def until(service: Service, true: Callable[[dict[str, Any]], bool], timeout_s: float = 20) -> None:
    wait_until(lambda: true(counts(service)), timeout_s)
