"""Channels, and who is subscribed to which.

Every user starts with the same share of the channels, and every channel with the same share of the
users. User i stands at ``frac(i * golden ratio)`` on a circle and channel c of C at ``c / C``; the
user is subscribed to the channel when the way from one to the other is shorter than the share. The
golden ratio spreads any number of first users evenly (Kronecker's sequence), so that a message to
any channel reaches the share of those who are there, give or take one or two, with no luck in it.
Joins and leaves are kept and change this until the next reset.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from chat.accounts import user_number
from chat.refusal import UnknownChannel

if TYPE_CHECKING:
    from chat.connection import Connection

GOLDEN = (math.sqrt(5) - 1) / 2


def begins_subscribed(user: int, channel: int, channels: int, share: float) -> bool:
    """Say whether a user who never joined or left is subscribed to a channel."""
    return (user * GOLDEN + channel / channels) % 1.0 < share


class Channel:
    """One channel and the connections that its messages go to."""

    __slots__ = ("members", "name", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.name = f"channel{number}"
        self.members: dict[Connection, None] = {}


class Channels:
    """All channels, with the joins and leaves that are in force."""

    def __init__(self, number: int, share: float, changes: Iterable[tuple[str, str, int]]) -> None:
        self._by_name = {each.name: each for each in map(Channel, range(number))}
        self._share = share
        self._changes = {(user, channel): bool(is_in) for user, channel, is_in in changes}

    @property
    def names(self) -> list[str]:
        """Return the names of all channels."""
        return list(self._by_name)

    def named(self, name: str) -> Channel:
        """Return a channel; raise UnknownChannel where there is none."""
        channel = self._by_name.get(name)
        if channel is None:
            raise UnknownChannel(
                f"no channel {name!r}: channel0 to channel{len(self._by_name) - 1}"
            )
        return channel

    def of(self, user: str) -> list[Channel]:
        """Return the channels that a user is subscribed to."""
        number, count = user_number(user), len(self._by_name)
        return [
            channel
            for channel in self._by_name.values()
            if self._changes.get(
                (user, channel.name),
                begins_subscribed(number, channel.number, count, self._share),
            )
        ]

    def change(self, user: str, channel: Channel, subscribed: bool) -> None:
        """Note a join or a leave."""
        self._changes[user, channel.name] = subscribed

    def clear(self) -> None:
        """Forget all joins and leaves."""
        self._changes.clear()
