"""A Python process beside a test."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# What a process does that only has to be there.
SLEEPS = "print(flush=True); import time; time.sleep(60)"


@contextmanager
def child(code: str, *words: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Run code that prints a line as soon as it is ready; it is killed at the block's end."""
    command = [sys.executable, "-c", code, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options) as started:
        try:
            assert started.stdout is not None
            assert started.stdout.readline()
            yield started
        finally:
            started.kill()
