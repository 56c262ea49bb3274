"""Compression of WebSocket messages: permessage-deflate (RFC 7692). No sockets here."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from perflab.load.websocket_call import MAX_MESSAGE_BYTES, TOO_BIG, WebSocketError

NAME = "permessage-deflate"
OFFER = f"{NAME}; client_max_window_bits"
LARGEST_WINDOW_BITS = 15
# What ends every message is not sent (RFC 7692, 7.2.1).
TAIL = b"\x00\x00\xff\xff"


@dataclass(frozen=True)
class Terms:
    """What both sides agreed to; a side without takeover forgets its window after each message."""

    server_takeover: bool = True
    client_takeover: bool = True
    server_bits: int = LARGEST_WINDOW_BITS
    client_bits: int = LARGEST_WINDOW_BITS


def agreed(answers: Sequence[str]) -> Terms:
    """Read the server's ``Sec-WebSocket-Extensions`` headers, in answer to ``OFFER``.

    Raises
    ------
    WebSocketError
        The server does not agree to it, or not on terms that the offer allows.
    """
    extensions = [each for each in ",".join(answers).split(",") if each.strip()]
    if not extensions:
        raise WebSocketError("handshake", f"the server does not agree to {NAME}")
    name, *parameters = (part.strip() for part in extensions[0].split(";"))
    if len(extensions) > 1 or name.lower() != NAME:
        raise WebSocketError("handshake", f"nobody asked for the extensions {', '.join(answers)}")
    found: dict[str, str] = {}
    for parameter in parameters:
        key, _, value = (word.strip() for word in parameter.partition("="))
        if key in found:
            raise WebSocketError("handshake", f"{NAME} has {key} twice")
        found[key] = value.strip('"')
    terms = Terms(
        server_takeover=_flag(found, "server_no_context_takeover"),
        client_takeover=_flag(found, "client_no_context_takeover"),
        server_bits=_bits(found, "server_max_window_bits", 8),
        # zlib makes no raw stream with a window of 8 bits.
        client_bits=_bits(found, "client_max_window_bits", 9),
    )
    if found:
        raise WebSocketError("handshake", f"{NAME} has no parameter {', '.join(found)}")
    return terms


def _flag(found: dict[str, str], name: str) -> bool:
    """Take a parameter that forbids something; return whether it is still allowed."""
    if found.get(name):
        raise WebSocketError("handshake", f"{name} takes no value, not '{found[name]}'")
    return found.pop(name, None) is None


def _bits(found: dict[str, str], name: str, least: int) -> int:
    bits = found.pop(name, str(LARGEST_WINDOW_BITS))
    if bits not in map(str, range(least, LARGEST_WINDOW_BITS + 1)):
        raise WebSocketError(
            "handshake", f"{name} is '{bits}', not {least} to {LARGEST_WINDOW_BITS}"
        )
    return int(bits)


class Deflate:
    """Both directions of one connection; no more is unpacked than a message may have."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._renew_packer()
        self._renew_unpacker()

    def _renew_packer(self) -> None:
        self._packer = zlib.compressobj(wbits=-self._terms.client_bits)

    def _renew_unpacker(self) -> None:
        self._unpacker = zlib.decompressobj(wbits=-self._terms.server_bits)

    def pack(self, message: bytes) -> bytes:
        """Return what is to be sent for a message."""
        packed = self._packer.compress(message) + self._packer.flush(zlib.Z_SYNC_FLUSH)
        if not self._terms.client_takeover:
            self._renew_packer()
        return packed[: -len(TAIL)]

    def unpack(self, packed: bytes) -> bytes:
        """Return the message that was sent.

        Raises
        ------
        WebSocketError
            It is too big, or not compressed.
        """
        try:
            message = self._unpacker.decompress(packed + TAIL, MAX_MESSAGE_BYTES + 1)
        except zlib.error as error:
            raise WebSocketError("protocol", f"{NAME}: {error}") from None
        if len(message) > MAX_MESSAGE_BYTES:
            reason = f"a message of more than {MAX_MESSAGE_BYTES} bytes"
            raise WebSocketError("message_too_big", reason, TOO_BIG)
        # A final block ends the stream; an empty one follows, and the next message begins anew
        # (RFC 7692, 7.2.3.4).
        if self._unpacker.unused_data not in (b"", TAIL, b"\x00" + TAIL):
            raise WebSocketError("protocol", f"{NAME}: bytes after the last block")
        if not self._terms.server_takeover or self._unpacker.eof:
            self._renew_unpacker()
        return message
