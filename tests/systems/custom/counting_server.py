"""A server that counts, as its image starts it; a service that needs it; and what fills it.

``store PORT`` begins to count at ``START.AT``, once it has taken its time. ``fill ROWS HOST PORT``
adds to the count. ``serve PORT URL`` notes in the file ``NOTES`` what it finds, and adds 1 for each
GET but that of ``/health``.
"""

from __future__ import annotations

import os
import sys
import time
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

STARTS_IN_S, WORK_S = 1.0, 0.003


def answers(host: str, port: int, answer: Callable[[str, str], str]) -> None:
    """Serve what ``answer`` returns for a method and a path."""

    class Answer(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body go out together: else the body waits 40 ms for an acknowledgement.
        wbufsize = -1

        def do_GET(self) -> None:
            body = answer(self.command, self.path).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    ThreadingHTTPServer((host, port), Answer).serve_forever()


def store(port: int) -> None:
    count = [int(os.environ["START.AT"])]
    time.sleep(STARTS_IN_S)

    def answer(method: str, path: str) -> str:
        if method == "POST":
            count[0] += int(path.removeprefix("/"))
            until = time.thread_time() + WORK_S
            while time.thread_time() < until:
                pass
        return str(count[0])

    answers("0.0.0.0", port, answer)


def ask(url: str, method: str = "GET") -> str:
    asked = urllib.request.Request(url, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(asked, timeout=10) as response:
        return str(response.read().decode())


def note(text: str) -> None:
    with Path(os.environ["NOTES"]).open("a") as file:
        file.write(f"{text}\n")


def serve(port: int, url: str) -> None:
    note(ask(url))

    def answer(_: str, path: str) -> str:
        if path != "/health":
            ask(f"{url}/1", "POST")
        return "done"

    answers("127.0.0.1", port, answer)


def main() -> None:
    step, *words = sys.argv[1:]
    if step == "store":
        store(int(words[0]))
    elif step == "fill":
        ask(f"http://{words[1]}:{words[2]}/{words[0]}", "POST")
        note("filled")
    else:
        serve(int(words[0]), words[1])


if __name__ == "__main__":
    main()
