"""Runs whose number of blocks is decided as they go: the rule, and the looks taken by it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

# Below 6 blocks the signed-rank test shows nothing at 5%.
FEWEST_AT_MOST = 6
MOST_AT_MOST = 200

Ending = Literal["", "decided", "most blocks"]


class Look(BaseModel):
    """One look at a run: after how many blocks, and the names of the contrasts still undecided."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    blocks: int = Field(ge=1, le=MOST_AT_MOST)
    undecided: tuple[str, ...] = ()


class UntilDecided(BaseModel):
    """Blocks are added until every contrast is decided: from ``least_blocks`` to ``most_blocks``.

    ``looks`` are those taken so far; ``ended`` says by what the run ended: everything was decided,
    or it had the most blocks it may have. Empty: it goes on, or was broken off.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    least_blocks: int = Field(ge=1, le=MOST_AT_MOST)
    most_blocks: int = Field(ge=FEWEST_AT_MOST, le=MOST_AT_MOST)
    looks: tuple[Look, ...] = Field(default=(), max_length=MOST_AT_MOST)
    ended: Ending = ""

    @model_validator(mode="after")
    def _least_is_not_above_most(self) -> UntilDecided:
        if self.least_blocks > self.most_blocks:
            raise ValueError(f"least_blocks = {self.least_blocks} is above {self.most_blocks}")
        return self

    def looked(self, blocks: int, undecided: tuple[str, ...]) -> UntilDecided:
        """Return the rule with one more look: a later one, or the same once more after a resume."""
        earlier = tuple(look for look in self.looks if look.blocks < blocks)
        ended: Ending = "" if undecided else "decided"
        if undecided and blocks >= self.most_blocks:
            ended = "most blocks"
        look = Look(blocks=blocks, undecided=undecided)
        return self.model_copy(update={"looks": (*earlier, look), "ended": ended})

    def text(self) -> str:
        """Return how the run came to its number of blocks, in a few words."""
        if not self.looks:
            return f"until decided, at most {self.most_blocks}"
        last = self.looks[-1]
        if self.ended == "decided":
            return f"until decided: after {last.blocks} of at most {self.most_blocks}"
        names = ", ".join(last.undecided)
        return f"until decided: after {last.blocks} of at most {self.most_blocks} undecided {names}"
