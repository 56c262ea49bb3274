"""The targets of load, loopback and hosts that the user named for this run, and their addresses."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from perflab.errors import TargetRefused

# The first address of an origin, or the error of its look-up.
Place = OSError | tuple[socket.AddressFamily, tuple[str, int]]
PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
ACCEPTS_WITHIN_S = 0.2


@dataclass(frozen=True)
class Origin:
    """Scheme, host and port of a target."""

    scheme: str
    host: str
    port: int

    @property
    def encrypted(self) -> bool:
        """Whether connections use TLS."""
        return self.scheme in ("https", "wss")

    @property
    def authority(self) -> str:
        """Return the value of the Host header, without the default port (RFC 9110, 7.2)."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


def split(url: str) -> tuple[Origin, str]:
    """Return origin and request target (path and query) of a URL; TargetRefused for others."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise TargetRefused(f"'{url}' is not a URL: {error}") from None
    if parts.scheme not in PORTS or not parts.hostname:
        raise TargetRefused(
            f"'{url}' is not an absolute URL; write it like http://127.0.0.1:8000/path"
        )
    # Browsers read a backslash as a slash, and may see another host than ``urlsplit``.
    if "\\" in url or any(ord(letter) <= 32 or ord(letter) > 126 for letter in url):
        raise TargetRefused(f"'{url}' holds characters that a URL must percent-encode")
    if "@" in parts.netloc:
        raise TargetRefused(f"'{url}' holds a user name or password, which are not sent")
    if "%" in parts.hostname:
        raise TargetRefused(
            f"'{url}' holds a zone of an address, or an encoded host: neither is understood; give "
            "an address that needs no zone"
        )
    if "[" in parts.netloc and ":" not in parts.hostname:
        raise TargetRefused(f"'{url}' has no IPv6 address in its brackets")
    if port == 0:
        raise TargetRefused(f"'{url}' has port 0, where nothing can listen")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Origin(parts.scheme, parts.hostname, port or PORTS[parts.scheme]), target


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine's loopback, without asking a name server."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refuse_foreign(url: str, allowed: Sequence[str] = ()) -> None:
    """Raise TargetRefused for a host that is neither this machine's loopback nor allowed."""
    host = split(url)[0].host
    if is_loopback(host) or host in {name.lower() for name in allowed}:
        return
    raise TargetRefused(
        f"'{host}' is not a target of this run: load goes to services the lab started, on "
        f"127.0.0.1. If the host is yours to load, name it: --allow-target {host} "
        f"(in Python: allow_targets=['{host}'])"
    )


def addresses(origin: Origin) -> list[tuple[socket.AddressFamily, tuple[str, int]]]:
    """Resolve an origin, or raise OSError; ``localhost`` keeps only addresses of loopback."""
    try:
        answers = socket.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # a label that is empty or too long for a name server
        raise socket.gaierror(socket.EAI_NONAME, f"'{origin.host}': {error}") from None
    pairs = [(family, (str(where[0]), int(where[1]))) for family, _, _, _, where in answers]
    if origin.host == "localhost":
        pairs = [pair for pair in pairs if is_loopback(pair[1][0])]
    if not pairs:
        raise socket.gaierror(socket.EAI_NONAME, f"'{origin.host}' has no loopback address")
    # IPv4 first: the services of the lab listen on 127.0.0.1.
    return sorted(pairs, key=lambda pair: pair[0] != socket.AF_INET)


def is_this_machine(url: str) -> bool:
    """Tell whether a target is on this machine: a socket can be bound to its address."""
    place = looked_up(split(url)[0])
    if isinstance(place, OSError):
        return False
    family, (address, _) = place
    with socket.socket(family) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def looked_up(origin: Origin) -> Place:
    """Return the first address of an origin, or the error of its look-up.

    Of ``localhost`` it is the first that accepts a connection: its server may listen on one only.
    """
    try:
        found = addresses(origin)
    except OSError as error:
        return error
    if origin.host != "localhost" or len(found) == 1:
        return found[0]
    return next((place for place in found if _accepts(*place)), found[0])


def _accepts(family: socket.AddressFamily, address: tuple[str, int]) -> bool:
    try:
        with socket.socket(family) as probe:
            probe.settimeout(ACCEPTS_WITHIN_S)
            return probe.connect_ex(address) == 0
    except OSError:  # no socket of this family can be made
        return False
