"""The endpoints of the health side: start the workload, read its results, see the page."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from registry.health import page
from registry.health.refusal import Refused, TooLarge
from registry.health.runs import Runs
from registry.health.secret import Secret
from registry.health.workload import MOST_BODY_BYTES, MOST_BYTES, read_workload

WORKLOAD = "/health/performance/workload"
RESULTS = "/health/performance/results/{run_id}"


class Health:
    """The health side of a service on ``port`` of loopback, whose models have one ``version``.

    It keeps runs in this process: the service must be one process. ``close`` it when the service
    stops, or a workload under way holds that up.
    """

    def __init__(
        self, port: int, secret: Secret, version: str = "main", most_bytes: int = MOST_BYTES
    ) -> None:
        self._secret = secret
        self._runs = Runs(port, version, most_bytes)

    def add_to(self, app: FastAPI) -> None:
        """Give an application the endpoints and the page."""
        app.post(WORKLOAD)(self.start)
        app.get(RESULTS)(self.results)
        app.add_exception_handler(Refused, _refuse)
        page.add_to(app)

    async def close(self) -> None:
        """Cancel the workload under way; none starts any more."""
        await self._runs.close()

    async def start(self, request: Request) -> JSONResponse:
        """Start the workload and answer at once."""
        # First the token: who has none is told nothing of what a body should be.
        self._secret.require(request.headers)
        run = self._runs.start(read_workload(await _body(request)))
        results = RESULTS.format(run_id=run.run_id)
        shown = {"run_id": run.run_id, "status": run.status, "results": results}
        return JSONResponse(shown, 202, {"Location": results})

    async def results(self, request: Request, run_id: str) -> JSONResponse:
        """Return how far a run is, or its results."""
        self._secret.require(request.headers)
        return JSONResponse(self._runs.get(run_id).shown(), headers={"Cache-Control": "no-store"})


async def _body(request: Request) -> bytes:
    """Read a short body; of a longer one no more than tells that it is."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BODY_BYTES:
            raise TooLarge(f"the body may have {MOST_BODY_BYTES} bytes")
    return body


async def _refuse(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refused)
    return error.answer()
