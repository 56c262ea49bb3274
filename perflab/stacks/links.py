"""Links between services: a delay and a bandwidth, put between any two services of a stack."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from perflab.stacks.plan import Node

RoundTripMs = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
# No limit is a word: 0 could as well mean that nothing passes.
BytesPerS = (
    Annotated[float, Field(ge=1000, le=1_000_000_000, allow_inf_nan=False)] | Literal["unlimited"]
)


class Link(BaseModel):
    """What stands between a service and one that it needs; the types are those of parameters, too.

    Attributes
    ----------
    round_trip_ms : float
        Delay of a round trip, half of it in each direction, 0 to 1,000 ms.
    bytes_per_s, total_bytes_per_s : float or "unlimited"
        Bytes per second of each connection, and of all connections together, which share them
        equally; each direction has as much. 1,000 to 1,000,000,000.

    Raises
    ------
    pydantic.ValidationError
        A value is outside of its range.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    round_trip_ms: RoundTripMs = 0.0
    bytes_per_s: BytesPerS = "unlimited"
    total_bytes_per_s: BytesPerS = "unlimited"

    def node(self, upstream: str, name: str = "link") -> Node:
        """Return the node of a stack that passes connections on to ``upstream``.

        Every limit can be changed between trials, and is recorded as the link reports it.
        """
        return Node(
            name=name,
            service="link",
            placement="link",
            needs={"upstream": upstream},
            settings=self.model_dump(),
        )
