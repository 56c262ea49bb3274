"""What travels over a WebSocket, and the published message of the codec benchmark.

These classes belong to no codec: each codec turns them into what it serializes, and back. ``kind``
names an envelope in every codec that has no types of its own.
"""

from __future__ import annotations

from typing import Annotated, get_args

from msgspec import Meta, Struct

Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class Send(Struct, frozen=True, tag_field="kind", tag="send"):
    """A user's message to a channel; ``stamp`` is the client's own and comes back in the answer."""

    channel: str
    text: str
    stamp: Int64 = 0


class Subscribe(Struct, frozen=True, tag_field="kind", tag="subscribe"):
    """Join a channel."""

    channel: str
    stamp: Int64 = 0


class Unsubscribe(Struct, frozen=True, tag_field="kind", tag="unsubscribe"):
    """Leave a channel."""

    channel: str
    stamp: Int64 = 0


class Ping(Struct, frozen=True, tag_field="kind", tag="ping"):
    """Ask for an answer on the path that messages take."""

    stamp: Int64 = 0


class Message(Struct, frozen=True, tag_field="kind", tag="message"):
    """A message for a subscriber; sequences rise by time of arrival, over all channels."""

    channel: str
    sender: str
    sequence: Int64
    text: str


class Ack(Struct, frozen=True, tag_field="kind", tag="ack"):
    """A send is as safe as the commit setting says; joins and leaves have sequence 0."""

    sequence: Int64
    stamp: Int64


class Pong(Struct, frozen=True, tag_field="kind", tag="pong"):
    """The answer to a ping."""

    stamp: Int64


class Error(Struct, frozen=True, tag_field="kind", tag="error"):
    """A frame was refused; ``stamp`` is that frame's, or 0 where it could not be read."""

    code: str
    reason: str
    stamp: Int64 = 0


Envelope = Send | Subscribe | Unsubscribe | Ping | Message | Ack | Pong | Error
KINDS: tuple[type[Struct], ...] = get_args(Envelope)


def tag_of(kind: type[Struct]) -> str:
    """Return the word for a kind of envelope."""
    return str(kind.__struct_config__.tag)


class Published(Struct, frozen=True):
    """The message of the published microbenchmark: a string, an int, a float and a list."""

    text: str
    id: Int64
    score: float
    items: list[Int64]


Shape = Envelope | Published
