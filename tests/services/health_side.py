"""Asking the health side of a service, and a bench that runs it."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from running import environment_of, quiet_port, wait_until

from perflab.paths import services_dir

WORKLOAD = "/health/performance/workload"
RESULTS = "/health/performance/results/"
MOST_BYTES = 20_000_000


@dataclass(frozen=True)
class Reply:
    """An HTTP answer with a JSON body."""

    status: int
    headers: dict[str, str]
    body: Any

    @property
    def code(self) -> str:
        return str(self.body["error"]["code"])

    @property
    def reason(self) -> str:
        return str(self.body["error"]["reason"])


@dataclass
class HealthSide:
    """A service's health side, and the token that opens it."""

    port: int
    token: str
    process: subprocess.Popen[bytes] | None = None
    log: Path = Path()

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Reply:
        """Ask with the token unless other headers are given; bytes are sent as they are."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        shown = {"Authorization": f"Bearer {self.token}"} if headers is None else headers
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", data=data, method=method, headers=shown
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return Reply(answer.status, dict(answer.headers), json.loads(answer.read()))
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, dict(error.headers), json.loads(error.read()))

    def begin(self, model: str, clients: int = 4, seconds: int = 20) -> str:
        """Start a workload; return its run."""
        reply = self.ask("POST", WORKLOAD, workload(model, clients, seconds))
        assert reply.status == 202, reply
        return str(reply.body["run_id"])

    def look(self, run: str) -> Any:
        """Return what is known of a run."""
        reply = self.ask("GET", RESULTS + run)
        assert reply.status == 200, reply
        return reply.body

    def results(self, run: str) -> Any:
        """Wait for the results of a run."""
        wait_until(lambda: self.look(run)["status"] != "running", timeout_s=30)
        return self.look(run)["results"]

    def let_go(self, run: str) -> Any:
        """Let a run's held downloads go on; return its results."""

        def has_ended() -> bool:
            self.ask("POST", "/release")
            return bool(self.look(run)["status"] != "running")

        wait_until(has_ended, timeout_s=30)
        return self.look(run)["results"]

    def is_up(self) -> bool:
        try:
            return self.ask("GET", "/counted").status == 200
        except OSError:
            return False


def workload(model: str, clients: int = 4, seconds: int = 20) -> dict[str, object]:
    """Return the body that starts a workload."""
    return {"num_clients": clients, "model_id": model, "duration_seconds": seconds}


@contextmanager
def bench(folder: Path) -> Iterator[HealthSide]:
    """Run the bench in a process of its own, in the registry's environment."""
    environment, token = environment_of("registry"), secrets.token_urlsafe(24)
    secret = folder / "token"
    secret.touch(mode=0o600)
    secret.write_text(token)
    side = HealthSide(quiet_port(), token, log=folder / "log")
    program = Path(__file__).with_name("health_bench.py")
    with side.log.open("wb") as log:
        side.process = subprocess.Popen(
            [environment.python, program, str(side.port), secret, str(MOST_BYTES)],
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(services_dir() / "registry"),
                **environment.variables(),
            },
            stdout=log,
            stderr=log,
        )
    try:
        wait_until(lambda: side.is_up() or side.process.poll() is not None, timeout_s=30)
        assert side.process.poll() is None, side.log.read_text()
        yield side
    finally:
        side.process.send_signal(signal.SIGKILL)
        side.process.wait(timeout=10)
