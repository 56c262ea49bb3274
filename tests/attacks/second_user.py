"""What a second user of the host does to the lab."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

# No entry in the list of users: attackers need none.
STRANGER = 61_234


@dataclass
class Stranger:
    """What the second user does; ``common`` is a folder like /tmp, where all users may write."""

    common: Path
    uid: int = STRANGER
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def does(self, action: Callable[[], object]) -> None:
        """Carry out an action as that user."""
        child = os.fork()
        if not child:
            try:
                os.setgroups([])
                os.setgid(self.uid)
                os.setuid(self.uid)
                os.umask(0)
                action()
            except BaseException:
                os._exit(1)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the attack failed"

    def runs(self, *command: str, uid: int | None = None, **environment: str) -> int:
        """Start a process of that user, or of another one; return its id."""
        user = self.uid if uid is None else uid
        path = {"PATH": "/usr/bin:/bin"}
        child = subprocess.Popen(
            command, env=path | environment, user=user, group=user, cwd="/", start_new_session=True
        )
        self.started.append(child)
        return child.pid

    def is_running(self, pid: int) -> bool:
        (child,) = [child for child in self.started if child.pid == pid]
        return child.poll() is None
