"""What is sent, and how it arrives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from perflab.errors import TargetRefused

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Request(BaseModel):
    """One prepared request and what its answer must be.

    ``node`` names the node of the stack that answers; the lab fills in its address.
    ``expect_body`` must occur in the body of every successful response.
    """

    model_config = ConfigDict(frozen=True)

    node: str
    method: str = "GET"
    path: str = "/"
    headers: Mapping[str, str] = Field(default_factory=dict)
    body: str = ""
    expect_status: int = 200
    expect_body: str = ""


class ClosedLoop(BaseModel):
    """``users`` users, each of whom waits for its answer before the next request.

    ``warmup_requests`` are sent first, by the same users, and recorded as stage ``warmup``.
    ``max_duration_s`` bounds each stage; requests not sent by then count as unsent.
    """

    model_config = ConfigDict(frozen=True)

    users: int = Field(ge=1)
    requests: int = Field(ge=1)
    warmup_requests: int = Field(default=0, ge=0)
    think_time_s: float = Field(default=0.0, ge=0)
    connection: Literal["per_request", "keep_alive"] = "keep_alive"
    timeout_s: float = Field(default=30.0, gt=0)
    max_duration_s: float = Field(default=120.0, gt=0)


class Workload(BaseModel):
    """A request and its arrival process."""

    model_config = ConfigDict(frozen=True)

    request: Request
    arrivals: ClosedLoop


def refuse_foreign(url: str, allowed: tuple[str, ...] = ()) -> None:
    """Refuse a target that is neither on this machine's loopback nor allowed by name.

    Raises
    ------
    TargetRefused
        Before anything is sent.
    """
    host = urlsplit(url).hostname or ""
    if host not in LOOPBACK and host not in allowed:
        raise TargetRefused(
            f"'{host}' is not a target of this run: load goes to services the lab started, on "
            "127.0.0.1"
        )
