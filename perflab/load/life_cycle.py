"""The life cycle of connections: how long one is used, and who closes it, as data."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Word = Literal["keep_alive", "per_request"]
WORDS: dict[str, dict[str, int]] = {"keep_alive": {}, "per_request": {"requests": 1}}


class Connections(BaseModel):
    """How many connections there may be, and when the client closes one.

    The words ``keep_alive`` (it never closes one) and ``per_request`` (after each request) stand
    for a life cycle, a whole number for a cap.

    Attributes
    ----------
    requests : int
        Requests of a connection; after the last one's answer it is closed (0: no limit). With 1,
        the request says ``Connection: close``.
    idle_s : float
        A connection without a request for so long is closed (0: never).
    churn_per_s : float
        So many connections are closed every second, over all workers, the oldest first; one that
        is in use, after its answer.
    churn_share : float
        The share of requests, drawn at random, after whose answers the connection is closed.
    most : int
        Cap on the connections open at a time, over all workers (0: one per user in a closed loop,
        else 2,000). A request that finds none free waits, and the wait is part of its response
        time.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    requests: int = Field(default=0, ge=0)
    idle_s: float = Field(default=0.0, ge=0, le=86_400)
    churn_per_s: float = Field(default=0.0, ge=0, le=100_000)
    churn_share: float = Field(default=0.0, ge=0, le=1)
    most: int = Field(default=0, ge=0, le=60_000)

    @model_validator(mode="before")
    @classmethod
    def _from_shorthand(cls, given: Any) -> Any:
        if isinstance(given, str):
            if given not in WORDS:
                raise ValueError(f"'{given}' is not {' or '.join(WORDS)}")
            return WORDS[given]
        return {"most": given} if isinstance(given, int) else given

    @model_validator(mode="after")
    def _has_one_rule_of_each_kind(self) -> Self:
        if self.requests == 1 and (self.idle_s or self.churn_per_s or self.churn_share):
            raise ValueError("a connection for each request has no idle time and no churn")
        if self.churn_per_s and self.churn_share:
            raise ValueError("give churn_per_s or churn_share, not both")
        return self

    @classmethod
    def of(cls, word: Word, most: int = 0) -> Self:
        """Return the life cycle that a word stands for."""
        return cls(**WORDS[word], most=most)

    @property
    def is_endless(self) -> bool:
        """Whether the client never closes a connection of its own accord."""
        return not (self.requests or self.idle_s or self.churn_per_s or self.churn_share)

    def part(self, most: int, workers: int) -> Self:
        """Return what one of several workers does: its cap, and its part of the churn."""
        return self.model_copy(update={"most": most, "churn_per_s": self.churn_per_s / workers})
