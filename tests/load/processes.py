"""Real servers, load workers and certificates, each for a time."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perflab.load.workers.generator import Generator


@contextmanager
def served(*words: str, program: str = "server.py") -> Iterator[int]:
    """Run a server that prints its port; yield the port."""
    child = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name(program)), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdout is not None
    try:
        yield int(child.stdout.readline())
    finally:
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


def a_certificate(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """Make a certificate for this machine; return a server's TLS with it, and its path."""
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
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cert, key)
    return tls, cert
