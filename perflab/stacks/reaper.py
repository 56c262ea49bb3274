"""The reaper: ends a stack when the process that owns it is gone, however it went.

It is started before the first service, in a session of its own, and reads a pipe. A line ``done``
means the owner cleaned up; the pipe closing without it means the owner died.
"""

from __future__ import annotations

import os
import subprocess
import sys

from perflab.paths import project_root


class Reaper:
    """The owner's side of the pipe."""

    def __init__(self, stack: str) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "perflab.stacks.reaper", stack],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd=project_root(),
        )

    def dismiss(self) -> None:
        """Say that everything was cleaned up."""
        if self._child.stdin is None:
            return
        try:
            self._child.stdin.write(b"done\n")
            self._child.stdin.close()
        except BrokenPipeError:
            pass
        self._child.wait(timeout=10)


def main() -> None:
    """Wait for the end of the owner, then remove what it left."""
    stack = sys.argv[1]
    if sys.stdin.buffer.readline() == b"done\n":
        return
    from perflab.stacks import leftovers

    os.environ.pop("PERFLAB_SERVICE", None)
    leftovers.remove_of_kind("run", stack)


if __name__ == "__main__":
    main()
