"""Which connected unix sockets belong together, as the kernel's socket diagnosis tells.

``/proc/net/unix`` names only the server's end. Source: sock_diag(7), section "UNIX domain sockets".
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, NLMSG_DONE, NLMSG_ERROR = 4, 20, 3, 2
NLM_F_REQUEST, NLM_F_DUMP = 0x1, 0x300
ESTABLISHED = 1 << 1
SHOW_NAME, SHOW_PEER = 1 << 0, 1 << 2
NAME, PEER = 0, 2
HEADER, REQUEST, ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=BBHIIIII"), "=HH"
MESSAGE_BYTES, BUFFER_BYTES, TIMEOUT_S = 16, 1 << 16, 1.0


def servers_by_client() -> dict[int, str]:
    """Return the name of the server by the inode of the client's socket, for this host's sockets.

    A server's end has the name of the socket that it listens at. Raises OSError where the kernel
    does not tell.
    """
    names: dict[int, str] = {}
    peers: dict[int, int] = {}
    for inode, name, peer in _established():
        names[inode], peers[inode] = name, peer
    return {
        inode: names[peer]
        for inode, peer in peers.items()
        if not names[inode] and names.get(peer)
    }  # fmt: skip


def _established() -> Iterator[tuple[int, str, int]]:
    """Yield inode, name and the peer's inode (0: none) of every connected socket."""
    asked = REQUEST.pack(socket.AF_UNIX, 0, 0, ESTABLISHED, 0, SHOW_NAME | SHOW_PEER, 0, 0)
    head = (HEADER.size + len(asked), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as line:
        line.settimeout(TIMEOUT_S)
        line.send(HEADER.pack(*head) + asked)
        while True:
            arrived = line.recv(BUFFER_BYTES)
            at = 0
            while at < len(arrived):
                length, kind, *_ = HEADER.unpack_from(arrived, at)
                if kind == NLMSG_DONE:
                    return
                if kind == NLMSG_ERROR:
                    raise OSError("the kernel does not tell which unix sockets are connected")
                yield _read(arrived[at + HEADER.size : at + length])
                at += length + -length % 4


def _read(message: bytes) -> tuple[int, str, int]:
    (inode,) = struct.unpack_from("=I", message, 4)
    name, peer, at = "", 0, MESSAGE_BYTES
    while at < len(message):
        length, kind = struct.unpack_from(ATTRIBUTE, message, at)
        value = message[at + 4 : at + length]
        if kind == NAME:
            name = value.rstrip(b"\0").decode(errors="replace").replace("\0", "@")
        elif kind == PEER:
            (peer,) = struct.unpack("=I", value)
        at += length + -length % 4
    return inode, name, peer
