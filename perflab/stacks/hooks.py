"""Hooks of a stack: what the lab asks of a node to seed it, to reset it, and to count.

A hook is one of three kinds, told apart by ``kind``: statements on a PostgreSQL node, an HTTP call,
or a command that runs in the service. :mod:`perflab.stacks.hook_calls` carries them out.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Purpose = Literal["seed", "reset", "count"]


class _Hook(BaseModel):
    """What every hook has: the node that it is for, and how long it may take."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    node: str
    timeout_s: float = Field(60.0, gt=0, le=3600)


class SqlHook(_Hook):
    """Statements on a PostgreSQL node, each on its own; a count is what the last one selects."""

    kind: Literal["sql"] = "sql"
    statements: tuple[str, ...] = Field(min_length=1)

    def __str__(self) -> str:
        return f"SQL '{'; '.join(self.statements)}'"


class HttpHook(_Hook):
    """An HTTP call to a node.

    A service that answers 409 is busy with what the last trial left, and is asked again until the
    time is up.

    Attributes
    ----------
    number : str, optional
        Where in the JSON answer the count is, as a JSON Pointer (RFC 6901): ``/stored/rows``; the
        empty pointer means that the answer itself is the number.
    """

    kind: Literal["http"] = "http"
    method: Literal["GET", "POST"] = "POST"
    path: str = Field(pattern="^/")
    number: str | None = Field(None, pattern="^(/.*)?$")

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class CommandHook(_Hook):
    """A command that runs in the service; a count is the one number that it prints.

    Its words may hold the placeholders of service.toml, such as ``{python}`` and ``{data}``.
    """

    kind: Literal["command"] = "command"
    command: tuple[str, ...] = Field(min_length=1)

    def __str__(self) -> str:
        return f"command '{' '.join(self.command)}'"


Hook = Annotated[SqlHook | HttpHook | CommandHook, Field(discriminator="kind")]
