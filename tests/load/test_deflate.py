"""What a compressed message may cost the client: never more than a message may have."""

from __future__ import annotations

import tracemalloc
import zlib

import pytest

from perflab.load.websocket_messages import TAIL, Deflate, Terms, WebSocketError

LIMIT = 1 << 20
BLOCK = 1 << 24


def bomb(blocks: int) -> bytes:
    """Return a message of so many times 16 MiB, in 16 kB each."""
    packer = zlib.compressobj(9, wbits=-15)
    block = packer.compress(bytes(BLOCK)) + packer.flush(zlib.Z_FULL_FLUSH)
    return (block * blocks)[: -len(TAIL)]


@pytest.mark.parametrize("blocks", [1, 64])
def test_however_large_a_bomb_no_more_is_unpacked_than_a_message_may_have(blocks: int) -> None:
    packed = bomb(blocks)
    deflate = Deflate(Terms())
    tracemalloc.start()
    try:
        with pytest.raises(WebSocketError, match="more than 1048576 bytes") as caught:
            deflate.unpack(packed)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.kind == "message_too_big"
    # zlib's rest, which was not unpacked, is as long as what came.
    assert peak < 4 * LIMIT + 3 * len(packed)
