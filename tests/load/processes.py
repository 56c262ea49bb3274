"""Real servers, load workers and certificates, each for a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perflab.load.workers.generator import Generator


@contextmanager
def served(*words: str, program: str = "server.py") -> Iterator[tuple[int, int]]:
    """Run a server that prints its port; yield port and process id."""
    child = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name(program)), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdout is not None
    try:
        yield int(child.stdout.readline()), child.pid
    finally:
        # A test may have left the server frozen.
        os.kill(child.pid, signal.SIGCONT)
        child.kill()
        child.wait()
        child.stdout.close()


@contextmanager
def a_worker(workers: int = 1, real_time: bool = False) -> Iterator[Generator]:
    """Start load workers, by default without real-time priority over their servers."""
    generator = Generator([max(os.sched_getaffinity(0))] * workers, {}, real_time=real_time)
    try:
        generator.start()
        yield generator
    finally:
        generator.close()


def a_certificate(folder: Path) -> tuple[Path, Path]:
    """Make a key and a certificate for this machine; return their paths."""
    key, cert = folder / "localhost.key", folder / "localhost.pem"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            "-keyout", str(key), "-out", str(cert), "-subj", "/CN=localhost",
            "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return key, cert
