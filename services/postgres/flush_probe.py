"""Measure what one flush to disk costs in a folder: 8 KiB written and fdatasync'ed, many times.

Prints {"filesystem": type, "flush_us": [...]} on one line. Refuses file systems that live in
memory: a flush there costs nothing and proves nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

PAGE = b"\x5a" * 8192
PAGES = 64
IN_MEMORY = ("tmpfs", "ramfs")


def filesystem_of(folder: str) -> str:
    """Return the type of the file system that holds a folder."""
    told = subprocess.run(
        ["df", "--output=fstype", folder], capture_output=True, text=True, check=True
    )
    return told.stdout.split()[-1]


def flushes_us(folder: str, count: int) -> list[float]:
    """Return the duration of each flush in microseconds."""
    with tempfile.TemporaryFile(dir=folder) as file:
        descriptor = file.fileno()
        os.pwrite(descriptor, PAGE * PAGES, 0)
        os.fsync(descriptor)
        durations = []
        for number in range(count):
            os.pwrite(descriptor, PAGE, number % PAGES * len(PAGE))
            begin = time.perf_counter_ns()
            os.fdatasync(descriptor)
            durations.append(round((time.perf_counter_ns() - begin) / 1e3, 1))
    return durations


def main() -> None:
    """Run the probe."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--count", type=int, default=40)
    options = parser.parse_args()
    kind = filesystem_of(options.folder)
    if kind in IN_MEMORY:
        sys.exit(f"{options.folder} is on {kind}: put the database on a real disk")
    flush_us = flushes_us(options.folder, options.count)
    print(json.dumps({"filesystem": kind, "flush_us": flush_us}))


if __name__ == "__main__":
    main()
