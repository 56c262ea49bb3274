"""Sockets of this network namespace, as the kernel's socket diagnosis tells of them over netlink.

Source: sock_diag(7); linux/netlink.h, linux/sock_diag.h, linux/unix_diag.h.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
REQUEST_DUMP, DONE, ERROR = 0x301, 3, 2
HEAD, ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=HH")
BUFFER_BYTES, TIMEOUT_S = 1 << 16, 1.0
UNIX_REQUEST, UNIX_FIXED_BYTES = struct.Struct("=BBHIIIII"), 16
ESTABLISHED = 1 << 1
SHOW_NAME, SHOW_PEER = 1 << 0, 1 << 2
NAME, PEER = 0, 2


def diagnosed(request: bytes, fixed_bytes: int) -> Iterator[tuple[bytes, dict[int, bytes]]]:
    """Yield the fixed part and the attributes, by kind, of each socket that is asked for.

    Raises OSError where the kernel does not tell.
    """
    head = (HEAD.size + len(request), SOCK_DIAG_BY_FAMILY, REQUEST_DUMP, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_SOCK_DIAG) as netlink:
        netlink.settimeout(TIMEOUT_S)
        netlink.send(HEAD.pack(*head) + request)
        while True:
            for kind, body in _parts(netlink.recv(BUFFER_BYTES), HEAD):
                if kind == DONE:
                    return
                if kind == ERROR:
                    raise OSError("the kernel does not tell of its sockets")
                yield body[:fixed_bytes], dict(_parts(body[fixed_bytes:], ATTRIBUTE))


def _parts(data: bytes, head: struct.Struct) -> Iterator[tuple[int, bytes]]:
    """Yield kind and content of messages, or of attributes; each begins with its length."""
    at = 0
    while at < len(data):
        length, kind, *_ = head.unpack_from(data, at)
        yield kind, data[at + head.size : at + length]
        at += (max(length, head.size) + 3) & ~3


def servers_by_client() -> dict[int, str]:
    """Return the name of the server by the inode of the client's socket, for all unix sockets.

    A server's end has the name of the socket that it listens at; ``/proc/net/unix`` names no peers.
    Raises OSError where the kernel does not tell.
    """
    names: dict[int, str] = {}
    peers: dict[int, int] = {}
    shown = SHOW_NAME | SHOW_PEER
    request = UNIX_REQUEST.pack(socket.AF_UNIX, 0, 0, ESTABLISHED, 0, shown, 0, 0)
    for fixed, attributes in diagnosed(request, UNIX_FIXED_BYTES):
        (inode,) = struct.unpack_from("=I", fixed, 4)
        name = attributes.get(NAME, b"").rstrip(b"\0")
        names[inode] = name.decode(errors="replace").replace("\0", "@")
        (peers[inode],) = struct.unpack("=I", attributes.get(PEER, bytes(4)))
    return {
        inode: names[peer]
        for inode, peer in peers.items()
        if not names[inode] and names.get(peer)
    }  # fmt: skip
