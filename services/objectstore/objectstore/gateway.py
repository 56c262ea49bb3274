"""versitygw: a real S3 gateway, with its objects as files on a disk."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

PROGRAM = "versitygw"


def program() -> str:
    """Return where the gateway is, or an empty string: only the image has it."""
    return shutil.which(PROGRAM) or ""


class Gateway:
    """The gateway as a child process; its password is in its environment alone."""

    name = "gateway"

    def __init__(self, host: str, port: int, user: str, secret: str, data: Path) -> None:
        self._at = (host, port)
        objects, internal = data / "objects", data / "iam"
        for folder in (objects, internal):
            folder.mkdir(parents=True, exist_ok=True)
        # Without being told so it closes every connection after one answer.
        words = ["--port", f"{host}:{port}", "--quiet", "--keep-alive", "posix", str(objects)]
        self._child = subprocess.Popen(
            [program(), *words],
            env={
                **os.environ,
                "ROOT_ACCESS_KEY": user,
                "ROOT_SECRET_KEY": secret,
                "VGW_IAM_DIR": str(internal),
            },
        )

    def is_ready(self) -> bool:
        """Tell whether it can be asked."""
        with suppress(OSError), socket.create_connection(self._at, timeout=1):
            return True
        return False

    def ended(self) -> str:
        """Return why it is no longer there, or an empty string."""
        code = self._child.poll()
        return "" if code is None else f"the gateway ended with status {code}"

    def pids(self) -> list[int]:
        """Return the processes whose memory and time are its own."""
        return [self._child.pid]

    def close(self) -> None:
        """End it."""
        self._child.terminate()
        try:
            self._child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._child.kill()
