"""Measure what one flush to disk costs in a folder: 8 KiB written and fdatasync'ed, many times.

Prints {"filesystem": type, "flush_us": [...]} on one line. Refuses file systems that live in
memory: a flush there costs nothing and proves nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterable

PAGE = b"\x5a" * 8192
PAGES = 64
IN_MEMORY = ("tmpfs", "ramfs")
REFUSED = 3


def filesystem_of(folder: str, mounts: Iterable[str]) -> str:
    """Return the type of the file system that holds a folder.

    ``mounts`` are the lines of ``/proc/self/mountinfo`` (proc(5)); of several mounts on one
    place the last is the visible one.
    """
    path = os.path.realpath(folder)
    best, kind = "", "unknown"
    for line in mounts:
        before, _, after = line.partition(" - ")
        mount = re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), before.split()[4])
        inside = path == mount or path.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, after.split()[0]
    return kind


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


def main() -> int:
    """Run the probe."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--count", type=int, default=40)
    options = parser.parse_args()
    with open("/proc/self/mountinfo") as mounts:
        kind = filesystem_of(options.folder, mounts)
    if kind in IN_MEMORY:
        print(f"{options.folder} is on {kind}: put the database on a real disk", file=sys.stderr)
        return REFUSED
    try:
        found = flushes_us(options.folder, options.count)
    except OSError as error:
        print(f"cannot measure flushes in {options.folder}: {error}", file=sys.stderr)
        return 1
    print(json.dumps({"filesystem": kind, "flush_us": found}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
