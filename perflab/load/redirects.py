"""The request that follows a redirect, and what is refused to be followed."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urljoin

from perflab.errors import TargetRefused
from perflab.load.outcome import CODES
from perflab.load.prepared import Prepared
from perflab.load.request import Connections, Request
from perflab.load.targets import refuse_foreign, split

# A whole answer, as expected or not: it may be a redirect.
WHOLE = {CODES[name] for name in ("", "status", "body", "length", "checksum")}
REDIRECTS = (301, 302, 303, 307, 308)
# Headers that a redirect leaves behind: with the body, and with the origin (secrets, above all).
OF_BODIES = frozenset(
    f"content-{name}" for name in ("encoding", "language", "length", "location", "type")
) | {"transfer-encoding", "expect"}
OF_ORIGINS = frozenset({"authorization", "cookie", "host", "proxy-authorization"})


def followed(
    base: Prepared,
    request: Request,
    status: int,
    location: str,
    number: int,
    life: Connections,
    allowed: Sequence[str],
) -> Prepared:
    """Return the request that follows the ``number``th redirect of a chain (RFC 9110, 15.4).

    Raises
    ------
    TargetRefused, ValueError
        It is one too many, leads nowhere, or to a host that is not allowed.
    """
    if number > base.redirects:
        raise TargetRefused("too many redirects")
    if not location:
        raise TargetRefused("a redirect to nowhere")
    here = f"{base.origin.scheme}://{base.origin.authority}{request.path}"
    url = urljoin(here, location)
    refuse_foreign(url, allowed)
    origin, path = split(url)
    if origin.scheme not in ("http", "https"):
        raise TargetRefused(f"a redirect to {origin.scheme}")
    changed: dict[str, object] = {"path": path, "data": ()}
    dropped: frozenset[str] = frozenset()
    to_get = status == 303 and request.method != "HEAD"
    if to_get or (status in (301, 302) and request.method == "POST"):
        changed |= {"method": "GET", "body": ""}
        dropped |= OF_BODIES
    if origin != base.origin:
        dropped |= OF_ORIGINS
    changed["headers"] = {
        name: value for name, value in request.headers.items() if name.lower() not in dropped
    }
    made = Prepared(request.model_validate(request.model_dump() | changed), origin, life)
    made.wants_answer, made.repeats = base.wants_answer, base.repeats
    made.wanted = base.wanted
    return made
