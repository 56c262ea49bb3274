"""What every client of load does, whatever library it is made of."""

from __future__ import annotations

from typing import Protocol

from perflab.load.exchange import Exchange
from perflab.load.first_errors import FirstErrors


class Client(Protocol):
    """What every client does: take an exchange, fill it in, call its ``finish``."""

    first_errors: FirstErrors
    timeout_s: float
    # Over HTTP/2: the most requests that were under way at a time on one connection.
    most_streams: int

    def submit(self, exchange: Exchange) -> None:
        """Send the request of an exchange whose ``planned_ns`` and ``started_ns`` are set."""

    def give_up_waiting(self) -> None:
        """Give up what waits for a connection (``unsent``)."""

    def abort(self) -> None:
        """Give up what is under way (``aborted``) and what waits (``unsent``)."""

    async def close(self) -> None:
        """Close every connection."""

    @property
    def capped(self) -> int:
        """Return how many requests waited because of the cap on connections."""
