"""From what a socket raised to an error class."""

from __future__ import annotations

import errno
import socket
import ssl

from perflab.load.outcome import CODES
from perflab.load.sending import FileChanged


def kind_of(error: OSError | ValueError, otherwise: str) -> int:
    """Return the error code of what a socket raised."""
    if isinstance(error, socket.gaierror):
        return CODES["dns"]
    if isinstance(error, ssl.SSLError):
        return CODES["tls"]
    if isinstance(error, FileChanged):
        return CODES["body_file"]
    if isinstance(error, ValueError):
        return CODES[otherwise]
    if error.errno == errno.EADDRNOTAVAIL:
        return CODES["ports"]
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return CODES["files"]
    if error.errno == errno.ETIMEDOUT:
        return CODES["timeout"]
    return CODES[otherwise]
