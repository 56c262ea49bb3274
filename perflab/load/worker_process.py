"""A load worker, seen from outside: its process, the orders it gets, the messages it sends."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from typing import Any

from perflab.errors import LoadError
from perflab.host.processes import how_it_ended
from perflab.load.stopping import Live, Progress
from perflab.paths import project_root


class WorkerProcess:
    """A child process on one core, that waits for orders."""

    def __init__(self, core: int, environment: dict[str, str]) -> None:
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {core})
        try:
            self.child = subprocess.Popen(
                [sys.executable, "-m", "perflab.load.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
                cwd=project_root(),
                env={**os.environ, **environment},
                bufsize=0,
            )
        finally:
            os.sched_setaffinity(0, before)
        self._pending = b""
        self.progress = Progress()
        self.live: Live | None = None

    def order(self, words: dict[str, Any]) -> None:
        """Give it an order; raises LoadError where it has died."""
        assert self.child.stdin is not None
        try:
            self.child.stdin.write(json.dumps(words).encode() + b"\n")
        except BrokenPipeError:
            raise LoadError(f"a load worker has died (pid {self.child.pid})") from None

    def messages(self) -> list[dict[str, Any]]:
        """Return the complete messages that have arrived; an empty read means it died."""
        assert self.child.stdout is not None
        arrived = os.read(self.child.stdout.fileno(), 1 << 20)
        if not arrived:
            ended = how_it_ended(self.child.wait())
            raise LoadError(f"a load worker died (pid {self.child.pid}): it {ended}")
        *lines, self._pending = (self._pending + arrived).split(b"\n")
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        """Close its pipe, and end it if that is not enough."""
        for pipe in (self.child.stdin, self.child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            self.child.wait(timeout=3)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
