"""The published virtual users of the chat service, the monitor beside them, and their frames.

The codecs were written from the service's README and ``chat.proto`` alone, so that the two sides
check each other.

Every text carries the planned instant of its sending, in digits of fixed width behind a mark. A
receiver finds the mark with ``bytes.find`` in the raw frame of any codec, so recording the latency
of a delivery costs about a microsecond, and no frame is decoded.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgpack  # type: ignore[import-untyped]
import msgspec
import orjson

from perflab.load.records.message_record import CONNECTED, CUT, LEFT, RECEIVED, SENT, WIRE
from perflab.load.users import NotServed, User, action
from perflab.systems.chat import PASSWORD

if TYPE_CHECKING:
    from perflab.load.clients.websocket import WebSocket

MARK, DIGITS = b"@at=", 19
FIRST = len(MARK)
LAST = FIRST + DIGITS
DELIVERY = "delivery"
WORDS = (
    "anchor", "basil", "candle", "delta", "ember", "fjord", "garnet", "harbour", "iris", "juniper",
    "kettle", "lantern", "marble", "nectar", "orchid", "pebble", "quartz", "raven", "saffron",
    "timber", "umbra", "velvet", "willow", "yarrow",
)  # fmt: skip
WORDS_PER_TEXT = (4, 14)
# The sum, with the close of a WebSocket, must stay below a driver's timeout for a script's end.
ANSWER_TIMEOUT_S, QUIET_TIMEOUT_S = 2.5, 0.4
# The wait between two pings, and the timeout of a closed ping: longer than any useful latency.
EVERY_S = (0.5, 1.5)
PONG_TIMEOUT_S = 30.0
# Longer than the gaps between the messages of one burst.
QUIET_S = 0.02
# Its multiples spread any number of users evenly (Kronecker's sequence).
GOLDEN = (5**0.5 - 1) / 2


Fields = dict[str, Any]
# Kinds of envelopes with their fields, both in the order of their numbers in chat.proto.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "send": ("channel", "text", "stamp"),
    "subscribe": ("channel", "stamp"),
    "unsubscribe": ("channel", "stamp"),
    "ping": ("stamp",),
    "message": ("channel", "sender", "sequence", "text"),
    "ack": ("sequence", "stamp"),
    "pong": ("stamp",),
    "error": ("code", "reason", "stamp"),
}
KINDS = tuple(FIELDS)
TEXTS = ("channel", "text", "sender", "code", "reason")
VARINT, LENGTH = 0, 2


@dataclass(frozen=True)
class Codec:
    """How a client speaks one codec; ``text``: its frames are WebSocket text frames."""

    encode: Callable[[Fields], bytes]
    decode: Callable[[bytes], Fields]
    text: bool = False


def protobuf_frame(fields: Fields) -> bytes:
    """Return an envelope in protobuf's wire format (Protocol Buffers documentation, Encoding)."""
    body = bytearray()
    for number, name in enumerate(FIELDS[fields["kind"]], 1):
        value = fields.get(name)
        if isinstance(value, str):
            body += _block(number, value.encode())
        elif value:
            body += bytes((number << 3 | VARINT,)) + _varint(value)
    return _block(KINDS.index(fields["kind"]) + 1, bytes(body))


def _block(number: int, data: bytes) -> bytes:
    return bytes((number << 3 | LENGTH,)) + _varint(len(data)) + data


def protobuf_fields(frame: bytes) -> Fields:
    """Return the fields of an envelope in protobuf's wire format; absent ones are 0 or empty.

    Raises ValueError for a frame that is cut short, or of no known kind.
    """
    number, body = next(_parts(frame), (0, b""))
    if not 1 <= number <= len(KINDS) or not isinstance(body, bytes):
        raise ValueError("an envelope of no known kind")
    kind = KINDS[number - 1]
    names = FIELDS[kind]
    fields: Fields = {"kind": kind, **{name: "" if name in TEXTS else 0 for name in names}}
    for field, value in _parts(body):
        if 1 <= field <= len(names):
            fields[names[field - 1]] = value.decode() if isinstance(value, bytes) else value
    return fields


def _varint(value: int) -> bytes:
    value &= 0xFFFF_FFFF_FFFF_FFFF
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= len(data):
            raise ValueError("a frame that is cut short")
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value - (1 << 64 if value >> 63 else 0), place


def _parts(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    place = 0
    while place < len(data):
        tag, place = _read_varint(data, place)
        value, place = _read_varint(data, place)
        if tag & 7 == VARINT:
            yield tag >> 3, value
        elif tag & 7 == LENGTH and place + value <= len(data):
            yield tag >> 3, data[place : place + value]
            place += value
        else:
            raise ValueError("a frame that is cut short or of another wire type")


CODECS: Mapping[str, Codec] = {
    "json": Codec(lambda fields: json.dumps(fields).encode(), json.loads, text=True),
    "orjson": Codec(orjson.dumps, orjson.loads),
    "msgspec": Codec(msgspec.json.encode, msgspec.json.decode),
    "msgpack": Codec(msgpack.packb, msgpack.unpackb),
    "protobuf": Codec(protobuf_frame, protobuf_fields),
}


def marked(planned_ns: int, text: str) -> str:
    """Return a text that carries an instant."""
    return f"{MARK.decode()}{planned_ns:0{DIGITS}d} {text}"


class Connected(User):
    """A user who logs in and listens.

    Parameters of the script: ``codec``, ``deflate``, ``channels`` (how many there are).
    """

    def __init__(self, number: int, seed: int, parameters: Mapping[str, Any]) -> None:
        super().__init__(number, seed, parameters)
        self.codec = CODECS[parameters["codec"]]
        self.socket: WebSocket
        self.subscribed: set[str] = set()
        self.leaving = False
        self.awaited: set[int] = set()
        self.answered = asyncio.Event()
        self.heard_ns = 0

    async def on_start(self) -> None:
        """Log in and connect."""
        credentials = {"user": f"user{self.number}", "password": PASSWORD}
        answer = await self.post("/login", credentials, name="login")
        if not answer.ok:
            text = f"login: {answer.error} {answer.status} {answer.body[:200]!r}"
            raise NotServed(answer.error, text)
        session = answer.json()
        self.subscribed = set(session["channels"])
        self.socket = await self.websocket(
            f"/ws?token={quote(session['token'])}",
            self.hear,
            deflate=bool(self.parameters["deflate"]),
            on_closed=self.closed,
        )
        self.note(SENT, 0, self.now_ns(), kind=CONNECTED)

    def hear(self, frame: bytes, at_ns: int) -> None:
        """Record a frame; this runs for every delivery and must stay cheap."""
        mark_at = frame.find(MARK)
        if mark_at >= 0:
            planned_ns = int(frame[mark_at + FIRST : mark_at + LAST])
            self.note(RECEIVED, len(frame), at_ns, planned_ns, DELIVERY)
            self.heard_ns = at_ns
        else:
            fields = self.codec.decode(frame)
            stamp = fields["stamp"]
            self.note(RECEIVED, len(frame), at_ns, stamp, fields["kind"])
            self.awaited.discard(stamp)
            if not self.awaited:
                self.answered.set()

    def closed(self, _kind: str, _code: int) -> None:
        """Record an end that this user did not want; no further answer will come."""
        self.answered.set()
        if not self.leaving:
            self.note(RECEIVED, 0, self.now_ns(), kind=CUT)

    def say(self, kind: str, fields: Fields) -> None:
        """Send a frame, planned for the instant the action was due."""
        # Read the clock first: encoding and compressing are a cost of the delivery, not lateness.
        at_ns = self.now_ns()
        self.awaited.add(self.due_ns)
        self.answered.clear()
        frame = self.codec.encode({**fields, "stamp": self.due_ns})
        self.socket.send(frame, self.codec.text)
        self.note(SENT, len(frame), at_ns, self.due_ns, kind)

    async def on_stop(self) -> None:
        """Disconnect in order, once all frames are answered and no burst is under way.

        The server may throw away the last frame of a user who closes at once. A user who leaves
        within a burst misses the rest of it, which the server then counts as dropped.
        """
        if self.awaited:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ANSWER_TIMEOUT_S):
                    await self.answered.wait()
        deadline_ns = self.now_ns() + round(QUIET_TIMEOUT_S * 1e9)
        while (now_ns := self.now_ns()) < min(deadline_ns, self.heard_ns + round(QUIET_S * 1e9)):
            await asyncio.sleep((self.heard_ns - now_ns) / 1e9 + QUIET_S)
        self.leaving = True
        self.note(RECEIVED, self.socket.wire_bytes, self.now_ns(), kind=WIRE)
        self.note(SENT, 0, self.now_ns(), kind=LEFT)
        await self.socket.close()


class ChatUser(Connected):
    """Sends (94%), joins (3%) or leaves (3%) at a constant pace.

    Parameters of the script besides those of :class:`Connected`: ``action_s``, the pace;
    ``first_s``, the time to the first action from the connection or, with ``beat_s``, from the
    instant at which the user was to join; or ``begin_s``, the time of the load at which the first
    user acts. With ``begin_s`` each user is ``beat_s`` behind the one before it, within one
    ``action_s``, or with ``spread`` evenly spread over it. ``leave_s``: no user leaves before that
    time of the load.
    """

    def __init__(self, number: int, seed: int, parameters: Mapping[str, Any]) -> None:
        super().__init__(number, seed, parameters)
        self.pacing_s = float(parameters["action_s"])
        self.channels = [f"channel{place}" for place in range(int(parameters["channels"]))]

    async def on_start(self) -> None:
        """Log in and connect; fail the load if that is over too late."""
        await super().on_start()
        if "begin_s" in self.parameters:
            latest_ns = self._at(float(self.parameters["begin_s"]))
        elif "beat_s" in self.parameters:
            latest_ns = self.first_due_ns()
        else:
            return
        if self.now_ns() > latest_ns:
            late_s = (latest_ns - self.load_began_ns) / 1e9
            raise RuntimeError(
                f"logins must be over {late_s:g} s after the load began, and they are not: let "
                "users join more slowly (join_s, ramp_s) or log in more cheaply (bcrypt_rounds)"
            )

    def first_due_ns(self) -> int:
        """Return when the first action is due."""
        parameters = self.parameters
        if "beat_s" not in parameters:
            return self.now_ns() + round(float(parameters["first_s"]) * 1e9)
        behind_s = self.number * float(parameters["beat_s"])
        if "begin_s" not in parameters:
            return self._at(float(parameters["first_s"]) + behind_s)
        if parameters["spread"]:
            behind_s = self.number * GOLDEN * self.pacing_s
        return self._at(float(parameters["begin_s"]) + behind_s % self.pacing_s)

    def leaves_ns(self) -> int:
        """Return the instant until which the user listens to the others."""
        leave_s = self.parameters.get("leave_s")
        return 0 if leave_s is None else self._at(float(leave_s))

    def _at(self, load_s: float) -> int:
        return self.load_began_ns + round(load_s * 1e9)

    @action(weight=94)
    async def send(self) -> None:
        """Send a random message to a subscribed channel."""
        if not self.subscribed:
            self.join_one()
            return
        # Sorted, because a set's order differs between processes and the seed alone must decide.
        channel = self.random.choice(sorted(self.subscribed))
        words = self.random.choices(WORDS, k=self.random.randint(*WORDS_PER_TEXT))
        text = marked(self.due_ns, " ".join(words))
        self.say("send", {"kind": "send", "channel": channel, "text": text})

    @action(weight=3)
    async def join(self) -> None:
        """Join a channel."""
        if len(self.subscribed) < len(self.channels):
            self.join_one()
        else:
            await self.send()

    @action(weight=3)
    async def leave(self) -> None:
        """Leave a channel."""
        if not self.subscribed:
            self.join_one()
            return
        channel = self.random.choice(sorted(self.subscribed))
        self.subscribed.discard(channel)
        self.say("leave", {"kind": "unsubscribe", "channel": channel})

    def join_one(self) -> None:
        """Join a channel that the user is not in."""
        channel = self.random.choice(
            [name for name in self.channels if name not in self.subscribed]
        )
        self.subscribed.add(channel)
        self.say("join", {"kind": "subscribe", "channel": channel})


class Monitor(Connected):
    """Pings once a second on the path that messages take, and receives messages like any user.

    The interval is random with a mean of one second: pings at whole seconds would always meet the
    same moment of a crowd that acts to a beat, and could miss its bursts.

    Parameter of the script besides those of :class:`Connected`: ``pings``. ``planned`` pings are
    sent when they are due. An unanswered ``closed`` ping holds the next one back, as in the
    published monitor; that wait is then in no record (coordinated omission).
    """

    wait_s = EVERY_S

    @action
    async def ping(self) -> None:
        """Ask for a pong, which waits behind the messages that came before it."""
        # The pacing counts from the planned instant of this ping, not from its answer.
        self.pacing_s = self.random.uniform(*EVERY_S)
        self.say("ping", {"kind": "ping"})
        if self.parameters["pings"] == "closed":
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PONG_TIMEOUT_S):
                    await self.answered.wait()
