"""``GET /performance/{model_id}/{version}/model.zip``, as the settings want it handled."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request
from fastapi.responses import Response

from registry.downloads.asynchronous import Asynchronous, Redirecting
from registry.downloads.blocking import Blocking
from registry.downloads.lines import FrameworkLine, Ticket
from registry.downloads.ranged import Ranged
from registry.downloads.request import download_of

PATH = "/performance/{model_id}/{version}/model.zip"


def handler_of(state: Any) -> Asynchronous | Redirecting | Blocking | Ranged:
    """Return what the settings name; ``state`` holds the open parts."""
    settings = state.settings
    if settings.handler == "async":
        return Asynchronous(state.async_store, settings.body)
    if settings.handler == "redirect":
        return Redirecting(state.async_store)
    if settings.handler == "ranged":
        return Ranged(state.store, state.line, settings.body, settings.range_parts)
    return Blocking(state.store, state.line, settings.body)


def add_to(app: FastAPI, handler: str) -> None:
    """Add the endpoint, which finds its parts when the application has started."""
    if handler == "threads":
        app.get(PATH)(download_in_thread)
    else:
        app.get(PATH)(download)


async def download(model_id: str, version: str, request: Request) -> Response:
    """Answer with a model; whether this blocks the event loop is up to the handler."""
    return await request.app.state.handler.answer(download_of(request, model_id, version))


async def queue(model_id: str, version: str, request: Request) -> Ticket[Response]:
    """Take note of a request that is about to wait for one of FastAPI's threads."""
    wanted = download_of(request, model_id, version)
    handler, line = request.app.state.handler, request.app.state.line
    assert isinstance(line, FrameworkLine)
    return line.ticket(lambda: handler.answer_here(wanted), wanted.phases)


def download_in_thread(ticket: Annotated[Ticket[Response], Depends(queue)]) -> Response:
    """Answer with a model; FastAPI runs a plain ``def`` in a thread of its own pool."""
    return ticket()
