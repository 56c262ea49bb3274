"""Addresses of origins, each looked up once."""

from __future__ import annotations

import socket

from perflab.load.targets import Origin, addresses

MAX_ORIGINS = 1_000


class AddressBook:
    """Where origins are; a name that could not be resolved stays so."""

    def __init__(self) -> None:
        self._addresses: dict[Origin, OSError | tuple[socket.AddressFamily, tuple[str, int]]] = {}

    def resolve(self, origin: Origin) -> None:
        """Look the origin's address up before the start; a failure becomes each request's."""
        if len(self._addresses) >= MAX_ORIGINS:
            # Only redirects lead to so many, each to another port.
            self._addresses.clear()
        try:
            self._addresses[origin] = addresses(origin)[0]
        except OSError as error:
            self._addresses[origin] = error

    def address(self, origin: Origin) -> tuple[socket.AddressFamily, tuple[str, int]]:
        """Return where to connect to.

        Raises
        ------
        OSError
            The name could not be resolved.
        """
        if origin not in self._addresses:
            self.resolve(origin)
        found = self._addresses[origin]
        if isinstance(found, OSError):
            raise found
        return found
