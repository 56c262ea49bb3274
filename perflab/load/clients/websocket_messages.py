"""Messages of a WebSocket: fragments, texts and compression, without sockets.

Sources: RFC 6455, and RFC 7692 for compression (permessage-deflate).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence

from perflab.load.clients.outcome import Failed

MAX_MESSAGE_BYTES = 1 << 20
MAX_FRAGMENTS = 1 << 14
PROTOCOL_ERROR, BAD_TEXT, TOO_BIG = 1002, 1007, 1009
CONTINUATION = 0
NAME = "permessage-deflate"
OFFER = f"{NAME}; client_max_window_bits"
LARGEST_WINDOW_BITS = 15
# The parameters of the extension that a server may answer with, each once, and their values.
PARAMETERS = {
    "server_no_context_takeover": "",
    "client_no_context_takeover": "",
    "server_max_window_bits": "[89]|1[0-5]",
    # zlib makes no raw stream with a window of 8 bits.
    "client_max_window_bits": "9|1[0-5]",
}
NEVER = "(?!)"
# The end of every compressed message, which is not sent (RFC 7692, 7.2.1).
TAIL = b"\x00\x00\xff\xff"


class WebSocketError(Failed):
    """A WebSocket could not be opened or used, or its server broke the rules.

    ``kind`` is the error class, ``code`` the close code for the server (RFC 6455, 7.4.1).
    """

    def __init__(self, kind: str, reason: str, code: int = PROTOCOL_ERROR) -> None:
        super().__init__(kind, reason)
        self.code = code


class Pieces:
    """Joins the frames of a message, up to the largest one allowed (RFC 6455, 5.4).

    ``count`` is the number of frames of an unfinished message.
    """

    def __init__(self) -> None:
        self._opcode = CONTINUATION
        self._packed = False
        self._parts = bytearray()
        self.count = 0

    def take(
        self, data: bytes, opcode: int, last: bool, packed: bool = False
    ) -> tuple[bytes, int, bool] | None:
        """Return a message with its last frame: its bytes, opcode, and whether it is packed."""
        self.count += 1
        if len(self._parts) + len(data) > MAX_MESSAGE_BYTES or self.count > MAX_FRAGMENTS:
            limits = f"{MAX_MESSAGE_BYTES} bytes or {MAX_FRAGMENTS} fragments"
            raise WebSocketError("message_too_big", f"a message of more than {limits}", TOO_BIG)
        if self.count == 1:
            if opcode == CONTINUATION:
                raise WebSocketError("protocol", "a continuation without a message")
            self._opcode, self._packed = opcode, packed
        elif opcode != CONTINUATION:
            raise WebSocketError("protocol", "a message began before the one before had ended")
        elif packed:
            raise WebSocketError("protocol", "RSV1 in a continuation")
        self._parts += data
        if not last:
            return None
        whole = bytes(self._parts)
        self._parts.clear()
        self.count = 0
        return whole, self._opcode, self._packed


def check_text(message: bytes) -> None:
    """Raise WebSocketError for a text that is not UTF-8 (RFC 6455, 8.1)."""
    try:
        message.decode()
    except UnicodeDecodeError as error:
        reason = f"a text that is not UTF-8: {error}"
        raise WebSocketError("protocol", reason, BAD_TEXT) from None


def may_be_sent(code: int) -> bool:
    """Tell whether a code may stand in a close frame (RFC 6455, 7.4; the registry of IANA)."""
    return (1000 <= code <= 1014 and code not in (1004, 1005, 1006)) or 3000 <= code <= 4999


def agreed(answers: Sequence[str]) -> Mapping[str, str]:
    """Return the parameters in ``Sec-WebSocket-Extensions`` headers, the answer to ``OFFER``."""
    extensions = [part for part in ",".join(answers).split(",") if part.strip()]
    if not extensions:
        raise WebSocketError("handshake", f"the server does not agree to {NAME}")
    name, *parameters = (part.strip() for part in extensions[0].split(";"))
    if len(extensions) > 1 or name.lower() != NAME:
        raise WebSocketError(
            "handshake", f"the server chose {', '.join(answers)}, not {NAME} alone"
        )
    values: dict[str, str] = {}
    for parameter in parameters:
        key, _, value = (word.strip().strip('"') for word in parameter.partition("="))
        if key in values or not re.fullmatch(PARAMETERS.get(key, NEVER), value):
            raise WebSocketError("handshake", f"{NAME} cannot have {parameter} here")
        values[key] = value
    return values


class Deflate:
    """Compresses and decompresses the messages of one connection, within their size limit.

    ``terms`` are the agreed parameters; a side without takeover drops its window after a message.
    """

    def __init__(self, terms: Mapping[str, str]) -> None:
        self._client_forgets = "client_no_context_takeover" in terms
        self._server_forgets = "server_no_context_takeover" in terms
        self._client_bits = int(terms.get("client_max_window_bits", LARGEST_WINDOW_BITS))
        self._server_bits = int(terms.get("server_max_window_bits", LARGEST_WINDOW_BITS))
        self._renew_packer()
        self._renew_unpacker()

    def _renew_packer(self) -> None:
        self._packer = zlib.compressobj(wbits=-self._client_bits)

    def _renew_unpacker(self) -> None:
        self._unpacker = zlib.decompressobj(wbits=-self._server_bits)

    def pack(self, message: bytes) -> bytes:
        """Return the compressed message."""
        packed = self._packer.compress(message) + self._packer.flush(zlib.Z_SYNC_FLUSH)
        if self._client_forgets:
            self._renew_packer()
        return packed[: -len(TAIL)]

    def unpack(self, packed: bytes) -> bytes:
        """Return the decompressed message."""
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
        if self._server_forgets or self._unpacker.eof:
            self._renew_unpacker()
        return message
