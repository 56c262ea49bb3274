"""Endpoints: inference with or without a database write, blocking or not."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from specimen.settings import public, read
from specimen.timing import KEY, Phases, ServerTiming

from app import async_store, blocking_store, runtimes
from app.readiness import Sign
from app.settings import Settings

SHOWN = ("synchronous_commit", "server_version")
FEATURES = 30
# The models compute in single precision: a larger number would turn into infinity there.
LARGEST = 3.4e38

Feature = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=-LARGEST, le=LARGEST)]


class Inference(BaseModel):
    """One row of features."""

    model_config = ConfigDict(extra="forbid")

    features: Annotated[list[Feature], Field(min_length=FEATURES, max_length=FEATURES)]


class Answer(BaseModel):
    """The model's answer, and the row it was written to."""

    label: int
    probability: float
    id: int | None = None


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Load the model and open the pools before the first request."""
    settings = app.state.settings = read(Settings, "INFERENCE_")
    sign = app.state.sign = Sign(settings.port, settings.workers)
    app.state.predict = loaded(settings)
    pool = settings.pool_of(sign.place)
    app.state.blocking = blocking_store.BlockingStore(settings, pool)
    app.state.nonblocking = await async_store.AsyncStore.open(settings, pool)
    sign.show_ready()
    yield
    app.state.blocking.close()
    await app.state.nonblocking.close()


def loaded(settings: Settings) -> runtimes.Predict:
    """Return the model; end the whole service where its runtime cannot run."""
    try:
        return runtimes.load(settings.runtime, settings.artifacts)
    except ValueError as error:
        print(error, file=sys.stderr, flush=True)
        if settings.workers > 1:
            # Uvicorn would start one worker after another in this one's place.
            os.kill(os.getppid(), signal.SIGTERM)
        raise


application = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None)
application.add_middleware(ServerTiming)


async def handed_over(request: Request) -> int:
    """Return the instant at which the event loop is done and a thread is asked for."""
    request.scope[KEY].reached("request")
    return time.perf_counter_ns()


HandedOver = Annotated[int, Depends(handed_over)]


def predict(request: Request, body: Inference) -> Answer:
    """Run the model as a timed phase."""
    phases: Phases = request.scope[KEY]
    with phases.phase("inference"):
        label, probability = request.app.state.predict(body.features)
    return Answer(label=label, probability=probability)


@application.post("/inferences")
def infer(request: Request, body: Inference, handed: HandedOver) -> Answer:
    """Predict, and write the result through the blocking driver."""
    phases: Phases = request.scope[KEY]
    phases.add("threadpool", handed)
    store: blocking_store.BlockingStore = request.app.state.blocking
    answer = predict(request, body)
    answer.id = store.insert(answer.label, answer.probability, phases)
    phases.done()
    return answer


@application.post("/inferences_async")
async def infer_async(request: Request, body: Inference) -> Answer:
    """Predict, and write the result through the non-blocking driver."""
    phases: Phases = request.scope[KEY]
    phases.reached("request")
    store: async_store.AsyncStore = request.app.state.nonblocking
    answer = predict(request, body)
    answer.id = await store.insert(answer.label, answer.probability, phases)
    phases.done()
    return answer


@application.post("/inferences_no_db")
def infer_no_db(request: Request, body: Inference, handed: HandedOver) -> Answer:
    """Predict in a thread, and write nothing."""
    phases: Phases = request.scope[KEY]
    phases.add("threadpool", handed)
    answer = predict(request, body)
    phases.done()
    return answer


@application.post("/inferences_no_db_async")
async def infer_no_db_async(request: Request, body: Inference) -> Answer:
    """Predict in the event loop, and write nothing."""
    phases: Phases = request.scope[KEY]
    phases.reached("request")
    answer = predict(request, body)
    phases.done()
    return answer


@application.get("/health")
async def health(request: Request) -> JSONResponse:
    """Answer 200 once every worker has loaded the model and opened its pools."""
    workers = request.app.state.settings.workers
    ready = request.app.state.sign.count()
    shown = {"ready": ready, "workers": workers}
    return JSONResponse(shown, status_code=200 if ready >= workers else 503)


@application.get("/settings")
async def settings(request: Request) -> dict[str, object]:
    """Return the settings in force, and the database's as the pools' connections see them."""
    shown: dict[str, object] = public(request.app.state.settings)
    store: async_store.AsyncStore = request.app.state.nonblocking
    shown["database"] = {name: await store.show(name) for name in SHOWN}
    return shown


async def refuse(_request: Request, error: Exception) -> JSONResponse:
    """Say what is wrong with a request, without the value: NaN is no JSON and cannot be echoed."""
    errors = error.errors() if isinstance(error, RequestValidationError) else []
    detail = [{name: wrong[name] for name in ("type", "loc", "msg")} for wrong in errors]
    return JSONResponse({"detail": detail}, status_code=422)


async def database_failed(_request: Request, error: Exception) -> JSONResponse:
    """Say that the database, not the request, is at fault."""
    detail = f"database: {type(error).__name__}: {str(error).strip()}"
    return JSONResponse({"detail": detail}, status_code=503)


application.add_exception_handler(RequestValidationError, refuse)
for failure in (blocking_store.DatabaseError, *async_store.DatabaseError):
    application.add_exception_handler(failure, database_failed)
