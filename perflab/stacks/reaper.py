"""The reapers: they end a stack when the process that owns it has ended, for whatever reason.

The owner starts them before the first service. Each reads a pipe: the line ``done`` means that the
owner cleaned up; a pipe that closes without it means that the owner died. There are two, since one
may be killed together with the owner.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from perflab.paths import project_root

COUNT = 2
ATTEMPTS = 5


class Reapers:
    """The reapers of a stack, each in a session of its own."""

    def __init__(self, stack: str) -> None:
        self._children = [
            subprocess.Popen(
                [sys.executable, "-m", "perflab.stacks.reaper", stack],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd=project_root(),
            )
            for _ in range(COUNT)
        ]

    def dismiss(self) -> None:
        """Tell the reapers that everything was cleaned up."""
        for child in self._children:
            child.communicate(b"done\n", timeout=10)


def main() -> None:
    """Wait for the end of the owner, then remove the stack that it left."""
    stack = sys.argv[1]
    if sys.stdin.buffer.readline() == b"done\n":
        return
    from perflab.stacks import cleanup

    os.environ.pop("PERFLAB_SERVICE", None)
    for _ in range(ATTEMPTS):
        try:
            cleanup.remove_stack(stack)
        except Exception:
            # The other reaper ends the same services: one that was listed may have ended already.
            time.sleep(0.2)
        else:
            return


if __name__ == "__main__":
    main()
