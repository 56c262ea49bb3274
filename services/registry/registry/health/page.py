"""The page for people: three files, read at the start, that ask nothing of any other place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import FastAPI, Response

FILES = {
    "/health/page": ("page.html", "text/html"),
    "/health/page.css": ("page.css", "text/css"),
    "/health/page.js": ("page.js", "text/javascript"),
}
# Only the service itself; what it answers cannot become HTML, nor the page a frame.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def add_to(app: FastAPI) -> None:
    """Give an application the page."""
    for path, (name, media_type) in FILES.items():
        content = Path(__file__).with_name(name).read_bytes()
        app.get(path)(showing(content, media_type))


def showing(content: bytes, media_type: str) -> Callable[[], Awaitable[Response]]:
    """Return the endpoint that answers with a file."""

    async def show() -> Response:
        return Response(content, media_type=media_type, headers=HEADERS)

    return show
