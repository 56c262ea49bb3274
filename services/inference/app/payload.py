"""What a request must contain and an answer does."""

from __future__ import annotations

from typing import Annotated

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

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


async def refuse(_request: Request, error: Exception) -> JSONResponse:
    """Say what is wrong with a request, without the value: NaN is no JSON and cannot be echoed."""
    found = error.errors() if isinstance(error, RequestValidationError) else []
    detail = [{"type": one["type"], "loc": one["loc"], "msg": one["msg"]} for one in found]
    return JSONResponse({"detail": detail}, status_code=422)
