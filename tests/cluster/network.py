"""Hosts of a test's own: network namespaces that a bridge joins.

The addresses are of 198.18.0.0/15, which is set aside for tests of network devices (RFC 2544), and
exist only inside.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator

import pytest

HEAD = "head"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Network:
    """Namespaces by name, the first of which has the bridge; nothing outside of them changes."""

    def __init__(self, *names: str) -> None:
        self._mark = f"perflab-{secrets.token_hex(4)}"
        self._names = [HEAD, *names]
        self._made: list[str] = []

    def _space(self, name: str) -> str:
        return f"{self._mark}-{name}"

    def address(self, name: str) -> str:
        return f"198.18.0.{1 + self._names.index(name)}"

    def inside(self, name: str) -> list[str]:
        """Return what a command is begun with so that it runs in a namespace."""
        return ["nsenter", f"--net=/run/netns/{self._space(name)}", "--"]

    def lay(self) -> None:
        for name in self._names:
            ip("netns", "add", self._space(name))
            self._made.append(name)
            ip("-n", self._space(name), "link", "set", "lo", "up")
        head = self._space(HEAD)
        ip("-n", head, "link", "add", "bridge", "type", "bridge")
        self._up(HEAD, "bridge")
        for number, name in enumerate(self._names[1:]):
            port, wire = f"port{number}", ("peer", "name", "wire", "netns", self._space(name))
            ip("-n", head, "link", "add", port, "type", "veth", *wire)
            ip("-n", head, "link", "set", port, "master", "bridge", "up")
            self._up(name, "wire")

    def _up(self, name: str, device: str) -> None:
        space = self._space(name)
        ip("-n", space, "address", "add", f"{self.address(name)}/24", "dev", device)
        ip("-n", space, "link", "set", device, "up")

    def remove(self) -> None:
        for name in self._made:
            subprocess.run(["ip", "netns", "delete", self._space(name)], check=False)


@contextlib.contextmanager
def network(*names: str) -> Iterator[Network]:
    """Give a network; skip where none can be made and none is required."""
    made = Network(*names)
    try:
        try:
            if os.geteuid() or not shutil.which("nsenter"):
                raise OSError("network namespaces need root, iproute2 and util-linux")
            made.lay()
        except (OSError, subprocess.CalledProcessError) as error:
            if os.environ.get("PERFLAB_REQUIRE_DOCKER") == "1":
                raise
            pytest.skip(str(error))
        yield made
    finally:
        made.remove()
