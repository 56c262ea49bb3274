"""What the kernel says of a process."""

from __future__ import annotations

import subprocess
import sys

from perflab.host.processes import peak_memory_bytes

LARGE = 300_000_000
SHOWN = "from perflab.host.processes import peak_memory_bytes; print(peak_memory_bytes())"


def test_a_process_is_not_charged_with_the_memory_of_whoever_started_it() -> None:
    held = b"x" * LARGE
    assert peak_memory_bytes() > len(held)
    done = subprocess.run([sys.executable, "-c", SHOWN], capture_output=True, text=True, check=True)
    assert 1_000_000 < int(done.stdout) < LARGE / 2
