"""Who may ask: requests are signed with the stack's password, or refused.

Moto itself believes everyone. Source: AWS Signature Version 4, "Create a signed request".
"""

from __future__ import annotations

import hashlib
import hmac
import io
import re
import time
from calendar import timegm
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import unquote

WsgiApp = Callable[[dict[str, Any], Any], Iterable[bytes]]
ALGORITHM = "AWS4-HMAC-SHA256"
LATE_S = 900
_HEADER = re.compile(
    ALGORITHM + r" Credential=([^/,]+)/(\d{8}/[^/,]+/[^/,]+/aws4_request), ?"
    r"SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})"
)


class Signed:
    """WSGI middleware that lets pass what ``user`` signed with ``secret``."""

    def __init__(self, app: WsgiApp, user: str, secret: str) -> None:
        self._app, self._user, self._secret = app, user, secret

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer 403 to everyone else."""
        if self._is_right(environ):
            return self._app(environ, start_response)
        if "HTTP_X_AMZ_TARGET" in environ:
            kind, text = "application/x-amz-json-1.0", '{"__type": "InvalidSignatureException"}'
        else:
            kind, text = "application/xml", "<Error><Code>SignatureDoesNotMatch</Code></Error>"
        length = str(len(text))
        start_response("403 Forbidden", [("Content-Type", kind), ("Content-Length", length)])
        return [text.encode()]

    def _is_right(self, environ: dict[str, Any]) -> bool:
        path, _, query = environ["REQUEST_URI"].partition("?")
        pairs = sorted(pair if "=" in pair else f"{pair}=" for pair in query.split("&") if pair)
        given = {name: unquote(value) for name, _, value in (pair.partition("=") for pair in pairs)}
        if "X-Amz-Signature" in given:
            user, _, scope = given.get("X-Amz-Credential", "").partition("/")
            headers, signature = given.get("X-Amz-SignedHeaders", ""), given["X-Amz-Signature"]
            pairs = [pair for pair in pairs if not pair.startswith("X-Amz-Signature=")]
            date, body = given.get("X-Amz-Date", ""), "UNSIGNED-PAYLOAD"
            lasts_s = int(given.get("X-Amz-Expires") or 0)
        else:
            found = _HEADER.fullmatch(environ.get("HTTP_AUTHORIZATION", ""))
            if found is None:
                return False
            user, scope, headers, signature = found.groups()
            date, lasts_s = environ.get("HTTP_X_AMZ_DATE", ""), LATE_S
            body = environ.get("HTTP_X_AMZ_CONTENT_SHA256") or _hash_of_body(environ)
        if user != self._user or not _is_fresh(date, lasts_s):
            return False
        lines = [f"{name}:{_header(environ, name)}\n" for name in headers.split(";")]
        asked = [environ["REQUEST_METHOD"], path, "&".join(pairs), "".join(lines), headers, body]
        return hmac.compare_digest(self._sign(date, scope, "\n".join(asked)), signature)

    def _sign(self, date: str, scope: str, request: str) -> str:
        key = f"AWS4{self._secret}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        hashed = hashlib.sha256(request.encode()).hexdigest()
        text = "\n".join([ALGORITHM, date, scope, hashed])
        return hmac.digest(key, text.encode(), "sha256").hex()


def _header(environ: dict[str, Any], name: str) -> str:
    known = name.upper().replace("-", "_")
    plain = known in ("CONTENT_TYPE", "CONTENT_LENGTH")
    return " ".join(str(environ.get(known if plain else f"HTTP_{known}", "")).split())


def _hash_of_body(environ: dict[str, Any]) -> str:
    """Hash a body that no header tells the hash of, and leave it to be read again."""
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    return hashlib.sha256(body).hexdigest()


def _is_fresh(date: str, lasts_s: int) -> bool:
    try:
        age_s = time.time() - timegm(time.strptime(date, "%Y%m%dT%H%M%SZ"))
    except ValueError:
        return False
    return -LATE_S <= age_s <= lasts_s
