"""Channels, and who is subscribed to which.

Every user starts with the same share of the channels, and every channel with the same share of the
users (the README says how). The golden ratio spreads any number of first users evenly (Kronecker's
sequence). Joins and leaves are kept and change this until the next reset.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from specimen.refusal import Refused

if TYPE_CHECKING:
    from chat.hub import Connection

GOLDEN = (math.sqrt(5) - 1) / 2


def begins_subscribed(user: int, channel: int, channels: int, share: float) -> bool:
    """Say whether a user who never joined or left is subscribed to a channel."""
    return (user * GOLDEN + channel / channels) % 1.0 < share


class Channels:
    """All channels: the connections that hear each, and the joins and leaves that are in force."""

    def __init__(self, number: int, share: float, changes: Iterable[tuple[str, str, int]]) -> None:
        self._members: dict[str, dict[Connection, None]] = {
            f"channel{place}": {} for place in range(number)
        }
        self._share = share
        self._changes = {(user, channel): bool(is_in) for user, channel, is_in in changes}

    def members(self, channel: str) -> dict[Connection, None]:
        """Return who hears a channel; raises Refused (``unknown_channel``) where there is none."""
        members = self._members.get(channel)
        if members is None:
            known = f"channel0 to channel{len(self._members) - 1}"
            raise Refused(404, "unknown_channel", f"no channel {channel[:40]!r}: {known}")
        return members

    def of(self, user: str) -> list[str]:
        """Return the channels that a user is subscribed to."""
        number, count = int(user.removeprefix("user")), len(self._members)
        return [
            name
            for place, name in enumerate(self._members)
            if self._changes.get((user, name), begins_subscribed(number, place, count, self._share))
        ]

    def change(self, user: str, channel: str, subscribed: bool) -> None:
        """Note a join or a leave."""
        self._changes[user, channel] = subscribed

    def enter(self, connection: Connection) -> None:
        """Let a connection hear what its user is subscribed to."""
        for name in self.of(connection.user):
            self._members[name][connection] = None

    def part(self, connection: Connection) -> None:
        """Send a connection no more messages."""
        for members in self._members.values():
            members.pop(connection, None)

    def clear(self) -> None:
        """Forget all joins and leaves."""
        self._changes.clear()
